// SPDX-License-Identifier: Apache-2.0
// The words of the trade that a page uses, each explained in a line.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "report_sections.hpp"

namespace eigenveil {
namespace {

struct Word {
  std::string_view found;  ///< in the page, as it is written there
  std::string_view word;
  std::string_view means;
};

constexpr std::array kWords = {
    Word{
        "differential", "Differential privacy",
        "A property of how a release was made, not of its numbers: it would have come out nearly as likely without any "
        "one row."},
    Word{"&epsilon;", "&epsilon; (epsilon)",
         "How much one person's data can change anybody's odds: at most by a factor of e to this power. Smaller is "
         "more private."},
    Word{"&delta;", "&delta; (delta)", "The probability with which that may fail. 1e-6 is one in a million."},
    Word{"&mu;", "&mu; (mu)",
         "The most that one row can move an answer, divided by its noise. Squares of mu add up over answers."},
    Word{"eigenvalue", "Eigenvalue",
         "How much of what is looked for lies along a direction: for principal components, variance."},
    Word{">PC1<", "Principal component",
         "A direction along which the rows vary most; its entries say how much each feature takes part."},
    Word{"95% b", "95% band", "Drawn so that 95 of 100 such bands hold the true number."},
    Word{"chip holds", "holds", "The direction is close to the true one: an analyst may interpret it."},
    Word{"chip plane", "plane",
         "Several directions together are right, but each by itself may be turned within their plane."},
    Word{"chip weak", "weak", "There is more than noise, but where it points is not determined."},
    Word{"chip noise", "noise", "As large as noise alone would give: nothing should be read from it."},
    Word{"<bdi>gram</bdi>", "gram",
         "One noisy answer holds all sums of products of two columns; directions are computed from it."},
    Word{"power</bdi>", "power methods", "Directions are improved in rounds; each round is a noisy answer."},
    Word{"<bdi>adaptive-power</bdi>", "adaptive-power",
         "Before each round, long contributions are shortened at a length that was found privately, which needs less "
         "noise."},
    Word{"<bdi>spiked</bdi>", "spiked",
         "The covariance is taken to be a few directions over equal variation in all others."},
    Word{"<bdi>once</bdi>", "once",
         "All sums that are needed were released with noise one time; everything else was computed from them."},
    Word{"<bdi>shrunk</bdi>", "shrunk",
         "Coefficients were pulled towards 0 as far as the noise asks for; so they predict better."},
    Word{"<bdi>each-step</bdi>", "each-step",
         "Noise is added to every product of an iteration, not to whole matrices."},
    Word{"<bdi>tight</bdi>", "tight accounting",
         "The total over all answers, from the distribution of what they reveal, rounded up."},
    Word{"<bdi>zcdp</bdi>", "zcdp accounting",
         "Zero-concentrated differential privacy: a simpler bound on the total, somewhat larger."},
    Word{"<bdi>replace-one</bdi>", "replace-one",
         "Two data sets are neighbours if one row is exchanged for any other. The number of rows is public."},
    Word{"<bdi>add-remove-one</bdi>", "add-remove-one",
         "Two data sets are neighbours if one has a row more. The number of rows is private."},
    Word{"Row bound", "Row bound",
         "The length that no row may exceed once its columns are on a common scale; longer ones are shortened."},
    Word{"second moments", "second moments", "Sums of products of two columns over all rows."},
    Word{"column sums", "column sums", "The sum of each column: with the number of rows, the mean."},
    Word{"<bdi>covariance</bdi>", "covariance, as an answer", "All sums of products of two columns, over all rows."},
    Word{"<bdi>trace</bdi>", "trace", "The variation of the rows in all directions together."},
    Word{"<bdi>radius</bdi>", "radius",
         "A length, found privately, that most rows do not exceed along these directions."},
    Word{"row bound</bdi>", "row bound, as an answer", "A length, found privately, that most rows do not exceed."},
    Word{"<bdi>product", "product", "What the rows make of a few directions: one round of an iteration."},
    Word{"<bdi>threshold", "threshold", "A length, found privately; longer contributions were shortened to it."},
    Word{"class counts", "class counts", "How many rows each class has."},
    Word{"score counts", "score counts", "How many rows lie in each cell of a grid along the first two directions."},
    Word{"class sums", "class sums", "The sum of each column over the rows of each class."},
    Word{"slice counts", "slice counts, slice sums",
         "Rows are sorted into slices by the response: how many each slice has, and the sums of their columns."},
    Word{"gradient</bdi>", "gradient", "Which way the heads should move, and how far, to tell pairs apart better."},
    Word{"pure, &epsilon;", "pure", "Noise whose promise holds without an exception of probability delta."},
    Word{"<bdi>prompt</bdi>", "prompt",
         "Heads were improved in rounds, so that images lie near the captions of their own class."},
    Word{"<bdi>whitened</bdi>", "whitened",
         "Heads are the directions in which the two views go together, on a common scale."},
    Word{"<bdi>cross</bdi>", "cross", "Heads were computed from one noisy matrix of products between the two views."},
    Word{"<bdi>batch</bdi>", "batch", "Heads were trained in noisy steps, each on a few pairs drawn by chance."},
    Word{"<bdi>pair</bdi>", "pair",
         "Heads were trained in noisy steps, in which the influence of every similarity is limited."},
    Word{"<bdi>scatter</bdi>", "scatter",
         "A fixed transform of an image into waves; nothing in it was learnt from data."},
    Word{"<bdi>hash</bdi>", "hash",
         "Words become places in a vector by a fixed rule; nothing in it was learnt from data."},
    Word{"Ridge", "Ridge",
         "A small amount added where a solution would otherwise divide by what noise may have made zero."},
    Word{"on B:", "B", "What variation is compared with: that within classes, or that within each of two views."},
    Word{"canonical pair", "Canonical pair",
         "A direction in each of two views, chosen so that scores along them go together."},
    Word{"orrelation<", "Correlation", "Between -1 and 1: how closely two numbers go together."},
    Word{"iscriminant direction", "Discriminant direction",
         "A direction along which classes lie far apart, compared with the spread within them."},
    Word{"regression direction", "Regression direction", "A weighting of the columns that the response depends on."},
    Word{"generalized eigenvector", "Generalized eigenvector",
         "A direction along which the first of two matrices is large, compared with the second."},
    Word{"oint embedding", "Joint embedding",
         "Both views of a row become vectors, by a matrix each (their heads), close together if they belong together."},
    Word{"95% i", "95% interval", "Drawn so that 95 of 100 such intervals hold the true number."},
    Word{"sampling error", "Sampling error",
         "What would be different if other rows of the same kind had been collected."},
    Word{"esidual variance", "Residual variance", "How far the target varies about its prediction, squared."},
    Word{"<b>Biplot.", "Biplot", "A picture of two directions at once, with an arrow for each feature."},
    Word{"Secure aggregation", "Secure aggregation",
         "Sites add masks that cancel in the total, so that only the total can be read."},
    Word{"Model-based guarantee", "Model-based guarantee",
         "A promise that needs an assumption about how the rows came about."},
    Word{"R^2", "R^2", "The share of the target's variance that the prediction explains."},
    Word{"logarithmic", "Logarithmic axis", "Equal steps are equal factors, so that small values stay visible."},
};

}  // namespace

std::string glossary_section(const std::string& page) {
  std::string list;
  for (const Word& word : kWords)
    if (page.find(word.found) != std::string::npos)
      list += fmt::format("<dt>{}</dt><dd>{}</dd>\n", word.word, word.means);
  if (list.empty()) return "";
  return "<section>\n<h2>Words on this page</h2>\n<dl class=\"words\">\n" + list + "</dl>\n</section>\n";
}

}  // namespace eigenveil
