// SPDX-License-Identifier: Apache-2.0
#include "operators.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace eigenveil {
namespace {

// Not here, and why: empty, new_empty, resize (memory that earlier rows wrote), set, as_strided (storage of others),
// save, from_file, load (files), backward, grad, retain_grad (state in parameters), manual_seed, seed (state of the
// process), quantized and custom operators (their schemas say nothing), and what reads or writes where a number among
// its inputs tells it to without looking whether that is within: ctc_loss, searchsorted (its sorter), *_backward.
constexpr const char* kAten = R"(
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr affine_grid_generator all allclose alpha_dropout amax
amin aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort asin asinh atan
atan2 atanh atleast_1d atleast_2d atleast_3d baddbmm batch_norm bernoulli bilinear binary_cross_entropy
binary_cross_entropy_with_logits bincount block_diag bmm broadcast_tensors broadcast_to bucketize cartesian_prod cat cauchy
cdist ceil celu chain_matmul channel_shuffle chunk clamp clamp_max clamp_min clip clone col2im column_stack combinations
concat constant_pad_nd contiguous copy copysign corrcoef cos cosh cosine_embedding_loss cosine_similarity count_nonzero cov
cross cross_entropy_loss cummax cummin cumprod cumsum cumulative_trapezoid deg2rad det detach diag diag_embed
diagflat diagonal diff digamma dim dist div divide dot dropout dsplit dstack einsum elu embedding embedding_bag
embedding_renorm eq equal erf erfc erfinv exp exp2 expand expand_as expm1 exponential eye feature_alpha_dropout
feature_dropout fill fill_diagonal flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac
frobenius_norm full full_like gather gcd ge gelu geometric glu greater greater_equal grid_sampler grid_sampler_2d
grid_sampler_3d group_norm gru gru_cell gt hamming_window hann_window hardshrink hardsigmoid hardswish hardtanh heaviside
hinge_embedding_loss histc hsplit hstack huber_loss hypot i0 igamma igammac im2col index index_add index_copy index_fill
index_put index_reduce index_select inner instance_norm inverse is_complex is_contiguous is_floating_point is_nonzero
is_same_size isclose isfinite isin isinf isnan isneginf isposinf isreal item kl_div kron kthvalue l1_loss layer_norm lcm le
leaky_relu lerp less less_equal lgamma linear linspace log log10 log1p log2 log_normal log_sigmoid log_softmax logaddexp
logaddexp2 logcumsumexp logdet logit logspace logsumexp lstm lstm_cell lt margin_ranking_loss masked_fill masked_scatter
masked_select matmul matrix_exp matrix_power max maximum mean median meshgrid min minimum mish mm mode moveaxis movedim
mse_loss mul multi_margin_loss multilabel_margin_loss multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile
nansum narrow narrow_copy ne neg negative new_full new_ones new_zeros nextafter nll_loss nll_loss2d nll_loss_nd nonzero
nonzero_numpy norm normal not_equal nuclear_norm numel one_hot ones ones_like outer pad pairwise_distance pdist permute
pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma positive pow prelu prod quantile rad2deg rand
rand_like randint randint_like randn randn_like random randperm ravel real reciprocal relu relu6 remainder renorm repeat
repeat_interleave reshape reshape_as rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round rrelu rsqrt rsub
scalar_tensor scatter scatter_add scatter_reduce select select_scatter selu sgn sigmoid sign signbit silu sin
sinc sinh size slice slice_scatter smooth_l1_loss soft_margin_loss softmax softplus softshrink sort split split_with_sizes
sqrt square squeeze stack std std_mean storage_offset stride sub subtract sum sum_to_size swapaxes swapdims t take
take_along_dim tan tanh tensor tensor_split tensordot threshold tile to topk trace transpose trapezoid trapz
triangular_solve tril tril_indices triplet_margin_loss triu triu_indices true_divide trunc type_as unbind unflatten unfold
uniform unique_consecutive unique_dim unsqueeze vander var var_mean vdot view view_as vsplit vstack where xlogy zero zeros
zeros_like _convolution _pack_padded_sequence _pad_packed_sequence _scaled_dot_product_attention _shape_as_tensor
_softmax _log_softmax _unique2 _weight_norm _native_multi_head_attention _transformer_encoder_layer_fwd
__and__ __or__ __xor__ __not__ __is__ __isnot__ __getitem__ __contains__ __derive_index __range_length
__round_to_zero_floordiv __lshift__ __rshift__ __interpolate
Bool Complex Delete Float FloatImplicit Int IntImplicit ScalarImplicit _set_item append bool chr clear cpu dict divmod
device double extend factorial float format get get_device half insert int is_grad_enabled is_autocast_enabled items join
keys len list long lower mathremainder modf ord ordered_dict percentFormat pop popitem remove requires_grad reverse
set_grad_enabled setdefault sorted str update upper values warn
)";
constexpr const char* kAtenFamilies[] = {
    "adaptive_avg_pool", "adaptive_max_pool", "avg_pool", "bitwise_", "conv1d",   "conv2d",  "conv3d",
    "conv_transpose",    "convolution",       "fft_",     "linalg_",  "logical_", "lp_pool", "max_pool",
    "reflection_pad",    "replication_pad",   "special_", "upsample_"};

// CreateObject and SetAttr are looked at by the caller. Enter and Exit are calls, and looked into.
constexpr const char* kPrim = R"(
Constant CreateObject DictConstruct GetAttr If ListConstruct ListUnpack Loop NumToTensor RaiseException SetAttr
TupleConstruct TupleIndex TupleSlice TupleUnpack Uninitialized abs device dtype is_cpu is_cuda is_mkldnn is_quantized
is_sparse isinstance itemsize layout max min rangelist requires_grad shape tolist type unchecked_cast
unchecked_unwrap_optional data ndim unsqueeze
)";

std::set<std::string, std::less<>> words(const char* text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Of these families, but they trust indices and pivots that are given to them.
bool is_trusting(std::string_view name) {
  return name.ends_with("_backward") || name == "linalg_ldl_solve" || name == "linalg_lu_solve" ||
         name.ends_with("_overrideable");
}

bool is_pure_aten(std::string_view name) {
  static const auto known = words(kAten);
  if (is_trusting(name)) return false;
  if (known.contains(name)) return true;
  if (name.ends_with('_') && !name.ends_with("__")) return is_pure_aten(name.substr(0, name.size() - 1));
  return std::any_of(std::begin(kAtenFamilies), std::end(kAtenFamilies),
                     [&](const char* family) { return name.starts_with(family); });
}

}  // namespace

bool is_pure_operator(std::string_view name) {
  constexpr std::string_view kAtenSpace = "aten::", kPrimSpace = "prim::";
  static const auto prim = words(kPrim);
  if (name.starts_with(kAtenSpace)) return is_pure_aten(name.substr(kAtenSpace.size()));
  return name.starts_with(kPrimSpace) && prim.contains(name.substr(kPrimSpace.size()));
}

bool may_return_input(std::string_view name) {
  static const auto known = words(R"(
aten::alpha_dropout aten::atleast_1d aten::atleast_2d aten::atleast_3d aten::cartesian_prod aten::chain_matmul
aten::channel_shuffle aten::dropout aten::einsum aten::feature_alpha_dropout aten::feature_dropout aten::pad
aten::pixel_shuffle aten::pixel_unshuffle aten::sum_to_size aten::type_as
)");
  return known.contains(name);
}

}  // namespace eigenveil
