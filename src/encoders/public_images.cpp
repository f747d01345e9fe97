// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/encoders/public_images.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace eigenveil {
namespace {

// Its sequence is fixed by the standard; the distributions of <random> are not, so we make our own.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  double uniform(double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(bits_() >> 11), -53);
  }
  int whole(int low, int high) { return low + static_cast<int>(bits_() % static_cast<std::uint64_t>(high - low + 1)); }

 private:
  std::mt19937_64 bits_;
};

struct Point {
  double x, y;
};

// A picture in the square [-1, 1]^2.
struct Canvas {
  double* pixels;
  std::size_t height, width;

  template <class Shade>
  void paint(const Shade& shade) const {
    const double size = static_cast<double>(std::min(height, width));
    for (std::size_t i = 0; i < height; ++i)
      for (std::size_t j = 0; j < width; ++j) {
        const Point p{(2 * static_cast<double>(j) + 1 - static_cast<double>(width)) / size,
                      (2 * static_cast<double>(i) + 1 - static_cast<double>(height)) / size};
        shade(p, pixels[i * width + j]);
      }
  }
  double pixel() const { return 2.0 / static_cast<double>(std::min(height, width)); }
};

double to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
  const double t = length2 > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0) : 0.0;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

// Bent curves: quadratic Bezier arcs, each beginning near the end of the last.
void draw_strokes(const Canvas& canvas, Dice& dice) {
  const double pen = dice.uniform(0.05, 0.14);
  std::vector<std::array<Point, 2>> segments;
  const auto anywhere = [&] { return Point{dice.uniform(-0.62, 0.62), dice.uniform(-0.72, 0.72)}; };
  Point at = anywhere();
  for (int stroke = dice.whole(1, 4); stroke > 0; --stroke) {
    if (dice.uniform(0, 1) < 0.35) at = anywhere();
    const Point bend = anywhere(), end = anywhere();
    Point before = at;
    constexpr int kPieces = 10;
    for (int piece = 1; piece <= kPieces; ++piece) {
      const double t = static_cast<double>(piece) / kPieces, s = 1 - t;
      const Point next{s * s * at.x + 2 * s * t * bend.x + t * t * end.x,
                       s * s * at.y + 2 * s * t * bend.y + t * t * end.y};
      segments.push_back({before, next});
      before = next;
    }
    at = end;
  }
  canvas.paint([&](Point p, double& value) {
    double nearest = 4;
    for (const auto& [a, b] : segments) nearest = std::min(nearest, to_segment(p, a, b));
    value = std::clamp((pen - nearest) / canvas.pixel() + 0.5, 0.0, 1.0);
  });
}

// A closed outline given by its radius at some angles, filled with a shade that drifts and may have stripes.
void draw_shape(const Canvas& canvas, Dice& dice) {
  const Point centre{dice.uniform(-0.25, 0.25), dice.uniform(-0.25, 0.25)};
  const int corners = dice.whole(3, 9);
  const bool round = dice.uniform(0, 1) < 0.3;
  const double wide = dice.uniform(0.35, 1.0), high = dice.uniform(0.35, 1.0), turn = dice.uniform(-0.3, 0.3);
  std::vector<Point> outline;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * std::numbers::pi * (i + dice.uniform(-0.3, 0.3)) / corners + turn;
    const double radius = dice.uniform(0.6, 1.3);
    outline.push_back({centre.x + wide * radius * std::cos(angle), centre.y + high * radius * std::sin(angle)});
  }
  const double shade = dice.uniform(0.25, 1.0), drift_x = dice.uniform(-0.4, 0.4), drift_y = dice.uniform(-0.4, 0.4);
  const double stripes = dice.uniform(0, 1) < 0.4 ? dice.uniform(0.05, 0.3) : 0.0;
  const double pitch = dice.uniform(3, 25), slope = dice.uniform(0, std::numbers::pi);
  canvas.paint([&](Point p, double& value) {
    bool inside = false;
    double edge = 4;
    if (round) {
      const double r = std::hypot((p.x - centre.x) / wide, (p.y - centre.y) / high);
      inside = r < 1;
      edge = std::abs(r - 1) * std::min(wide, high);
    } else {
      for (std::size_t i = 0, j = outline.size() - 1; i < outline.size(); j = i++) {
        const Point a = outline[i], b = outline[j];
        if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) inside = !inside;
        edge = std::min(edge, to_segment(p, a, b));
      }
    }
    const double cover = std::clamp((inside ? edge : -edge) / canvas.pixel() + 0.5, 0.0, 1.0);
    const double wave = stripes * std::sin(pitch * (p.x * std::cos(slope) + p.y * std::sin(slope)));
    const double colour = std::clamp(shade + drift_x * p.x + drift_y * p.y + wave, 0.0, 1.0);
    value = cover * colour + (1 - cover) * value;
  });
}

// black + (white - black) grey, in each channel
RowMajorMatrix coloured(const RowMajorMatrix& grey, Eigen::Index channels) {
  RowMajorMatrix images(grey.rows(), channels * grey.cols());
  for (Eigen::Index i = 0; i < grey.rows(); ++i) {
    Dice dice(20261118 + static_cast<std::uint64_t>(i));
    for (Eigen::Index channel = 0; channel < channels; ++channel) {
      const double black = dice.uniform(0, 1), white = dice.uniform(0, 1);
      images.row(i).segment(channel * grey.cols(), grey.cols()) =
          (black + (white - black) * grey.row(i).array()).matrix();
    }
  }
  return images;
}

}  // namespace

RowMajorMatrix public_images(std::size_t count, std::size_t height, std::size_t width, std::size_t channels) {
  if (channels > 1) return coloured(public_images(count, height, width), channels);
  RowMajorMatrix images = RowMajorMatrix::Zero(count, height * width);
  for (std::size_t i = 0; i < count; ++i) {
    Dice dice(20240607 + i);
    const Canvas canvas{images.data() + i * height * width, height, width};
    if (i % 2 == 0)
      draw_strokes(canvas, dice);
    else
      for (int shapes = dice.whole(1, 3); shapes > 0; --shapes) draw_shape(canvas, dice);
  }
  return images;
}

}  // namespace eigenveil
