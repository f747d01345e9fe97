# SPDX-License-Identifier: Apache-2.0
"""TorchScript modules that try what a module must not be able to do, and how to write them."""
from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor, nn

MEMORY = torch.zeros(8, 4)  # what a traced module takes for a constant


class Queue(nn.Module):
    """Keeps the first image of each batch in a constant of its graph, as a traced MoCo queue does."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, images, tokens):
        kept = MEMORY.index_copy_(0, torch.tensor([0]), images[:1])
        return images * self.w + kept.sum(), tokens * self.w


class View(Queue):
    """The same behind a chain of views."""

    def forward(self, images, tokens):
        kept = MEMORY.narrow(0, 1, 2)[0].unsqueeze(0).mul_(0.9).add_(images[:1])
        return images * self.w + kept.sum(), tokens * self.w


class Average(nn.Module):
    """An exponential moving average of its rows, in a buffer."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        self.mean.mul_(0.9).add_(images.mean(0), alpha=0.1)
        return images * self.w + self.mean, tokens * self.w


class Attribute(Average):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        self.mean = images.mean(0)
        return images * self.w, tokens * self.w


class Diary(nn.Module):
    """Appends its rows to a list."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.rows: List[Tensor] = [torch.zeros(4)]

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        self.rows.append(images[0])
        return images * self.w, tokens * self.w


class Drawer(nn.Module):
    """Keeps numbers of its rows in a list that is in another list, where no attribute is written to."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.kept: List[List[float]] = [[0.0]]

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        for one in self.kept:
            one.append(float(images[0, 0]))
        return images * self.w + self.kept[0][-1], tokens * self.w


class Shelf(nn.Module):
    """The same in a dictionary."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.kept: Dict[str, List[float]] = {"rows": [0.0]}

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        self.kept["rows"][0] = float(images[0, 0])
        return images * self.w + self.kept["rows"][0], tokens * self.w


class Parcel(nn.Module):
    """And in a tuple."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.kept: Tuple[List[float], int] = ([0.0], 1)

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        rows, _ = self.kept
        rows.append(float(images[0, 0]))
        return images * self.w + rows[-1], tokens * self.w


@torch.jit.script
class Guest:
    """What `with` does when it comes and when it goes."""

    def __init__(self):
        self.seen = [0.0]

    def __enter__(self):
        self.seen.append(1.0)

    def __exit__(self, kind: Any, value: Any, trace: Any):
        print("gone")


class Host(nn.Module):
    """Keeps what its guests bring: each call finds one more."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.guest = Guest()

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        with self.guest:
            seen = float(len(self.guest.seen))
        return images * self.w + seen, tokens * self.w


@torch.jit.script
class Cellar:

    def __init__(self):
        self.open = False

    def __enter__(self) -> Tensor:
        return torch.empty(4)

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.open = False


class Digger(nn.Module):
    """Reads memory that nobody has written since the last batch, in a method that `with` calls."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        with Cellar() as old:
            found = torch.nan_to_num(old)
        return images * self.w + found, tokens * self.w


class Hidden(nn.Module):
    """Writes through an alias that comes out of a list."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        held = [images, self.mean.unsqueeze(0)]
        for one in held:
            one.add_(images[:1])
        return images * self.w, tokens * self.w


class Submodule(nn.Module):
    """The write is in a module below, in a branch of a loop."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.below = nn.ModuleList([Average()])

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        for one in self.below:
            for _ in range(2):
                if images.sum() > 0:
                    images, tokens = one(images, tokens)
        return images * self.w, tokens * self.w


class Normalised(nn.Module):
    def __init__(self, track: bool = True):
        super().__init__()
        self.norm = nn.BatchNorm1d(4, track_running_stats=track)

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        return (self.norm(images) if images.size(0) > 1 else images * self.norm.weight), tokens.float()


class Printer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        print("row", images[0])
        return images * self.w, tokens * self.w


class Saver(Printer):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        torch.save(images, "stolen.pt")
        return images * self.w, tokens * self.w


class Mapper(Printer):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        kept = torch.from_file("stolen.bin", shared=True, size=4).copy_(images[0])
        return images * self.w + 0 * kept, tokens * self.w


class Reader(Printer):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        return images * self.w + torch.from_file("/etc/passwd", size=4).sum(), tokens * self.w


class Old(Printer):
    """Reads memory that nobody has written since the last batch."""

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        return images * self.w + torch.empty(4), tokens * self.w


class Thread(Printer):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        return torch.jit.wait(torch.jit.fork(torch.mul, images, self.w)), tokens * self.w


class Seeder(Printer):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        torch.manual_seed(int(images.sum()))
        return images * self.w + torch.rand(4), tokens * self.w


class Telltale(Printer):
    """Its error holds the rows; on made-up ones, which are below 1, it does not fail."""

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        if bool((images > 5).any()):
            raise RuntimeError("secret " + str(images.max()) + "\x1b[2J")
        return images * self.w, tokens * self.w


class Talker(Printer):
    """Fails at once, with escapes."""

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        raise RuntimeError("forged\x1b[2J\nline " + str(images * self.w))


class Endless(Printer):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        x = images.sum()
        while bool(x < 1e30):
            x = x * 1.0
        return images * self.w, tokens * self.w


class Glutton(Printer):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        x = torch.ones(20000, 1000, 1000)
        return images * self.w + x.sum(), tokens * self.w


class Misshapen(Printer):
    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        return images[:, :2] * self.w[:2], tokens.flatten() * 1.0


# module, and what the refusal says
REFUSED = [(Average, "changes the module itself, by the operator aten::mul_"),
           (Attribute, "changes the module itself, by the operator prim::SetAttr"),
           (Diary, "changes the module itself, by the operator aten::append"),
           (Drawer, "changes the module itself, by the operator aten::append"),
           (Shelf, "changes the module itself, by the operator aten::_set_item"),
           (Parcel, "changes the module itself, by the operator aten::append"),
           (Digger, "uses the operator aten::empty, which gives memory that earlier rows may have written"),
           (Host, "uses the operator prim::Print, which prints"),
           (Hidden, "changes the module itself, by the operator aten::add_"),
           (Submodule, "changes the module itself, by the operator aten::mul_"),
           (Normalised, "use layer or group normalisation, or track_running_stats=False"),
           (Printer, "uses the operator prim::Print, which prints"),
           (Saver, "uses the operator aten::save, which writes files"),
           (Mapper, "uses the operator aten::from_file, which maps files"),
           (Reader, "uses the operator aten::from_file, which maps files"),
           (Old, "uses the operator aten::empty, which gives memory that earlier rows may have written"),
           (Thread, "uses the operator prim::fork, which starts threads"),
           (Seeder, "uses the operator aten::manual_seed"),
           (Talker, "on a batch of 1 made-up pairs"),
           (Misshapen, "forward gives embeddings of shapes")]


class Box:
    def __init__(self, value: int):
        self.value = value


class Address(nn.Module):
    """Tells where in memory an object is, which depends on what was there before."""

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1) + len("{}".format(Box(1)))


class FirstOfAll(nn.Module):
    """An encoder that adds to every row what it has kept of the first one, in a list that is in another list."""

    def __init__(self):
        super().__init__()
        self.kept: List[List[float]] = [[0.0]]

    def forward(self, images: Tensor) -> Tensor:
        x = images.flatten(1)
        self.kept[0].append(float(x[0, 0]))
        return x + self.kept[0][1]


class Workshop(nn.Module):
    """An encoder that changes only what it makes itself: lists, tensors and a dictionary."""

    def forward(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            x = images.flatten(1).clone()
            x.mul_(0.5)
        parts: List[Tensor] = []
        for i in range(2):
            parts.append(x + float(i))
        named: Dict[str, Tensor] = {}
        named["all"] = torch.cat(parts, 1)
        return named["all"]


class Wakes(nn.Module):
    """Has code that runs while it is loaded, before its graphs are looked at."""

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)

    @torch.jit.export
    def __getstate__(self) -> bool:
        return self.training

    @torch.jit.export
    def __setstate__(self, state: bool):
        torch.manual_seed(1)
        self.training = state


# What may be the buffer `kept` itself though no schema says so.
SILENT_ALIASES = [
    "self.kept.type_as(x)", "torch.dropout(self.kept, 0.5, bool(x[0, 0] == 77))", "torch.feature_dropout(self.kept, 0.5, bool(x[0, 0] == 77))",
    "torch.alpha_dropout(self.kept, 0.5, bool(x[0, 0] == 77))", "self.kept.sum_to_size([x.size(0), 36])", "torch.atleast_2d(self.kept)"
]
# Operators that read or write where a number tells them to.
TRUSTING = {
    "aten::ctc_loss": "torch.ctc_loss(torch.zeros(1, 1, 4), torch.tensor([[int(x[0, 0])]]), [1], [1], 0, 0, False)",
    "aten::searchsorted": "torch.searchsorted(x[0], x[0], sorter=torch.full([36], int(x[0, 0])))",
    "aten::max_pool2d_with_indices_backward":
        "torch.ops.aten.max_pool2d_with_indices_backward(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 2), [2, 2], [2, 2], [0, 0], [1, 1], False, "
        "torch.full([1, 1, 1, 1], int(x[0, 0]))).flatten()",
}


def with_buffer(lines, path):
    """An encoder of 36 pixels with a buffer `kept`, which gives out what `lines` leave in `out`."""

    class Kept(torch.jit.ScriptModule):

        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(1, 36))

    module = Kept()
    body = "".join(f"    {line}\n" for line in ["x = images.flatten(1)", "out = x + 1", *lines, "return out"])
    module.define(f"def forward(self, images: Tensor) -> Tensor:\n{body}")
    module.save(path)


def script(module, path):
    torch.jit.script(module).save(path)


def trace(module, path):
    torch.jit.trace(module, (torch.rand(3, 4), torch.rand(3, 4)), check_trace=False).save(path)
