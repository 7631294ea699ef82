"""What kernels are called in runs and reports: by name, an image by its file's name."""

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import PurePath


def kernels_by_label(kernels: Sequence[str]) -> dict[str, str]:
    """
    Return the kernels by what they are called, in the order given.

    Images whose files have the same name, or that of another kernel, are told apart by
    the nearest directory that differs: `linux-rt/bzImage` and `linux/bzImage`; if no
    single one does, by their whole paths.
    """
    plain = [PurePath(kernel).name for kernel in kernels]
    times = Counter(plain)
    clashing = [
        kernel
        for kernel, name in zip(kernels, plain, strict=True)
        if times[name] > 1 and "/" in kernel
    ]
    labels = [
        _told_apart(kernel, [k for k in clashing if PurePath(k).name == name])
        if kernel in clashing
        else name
        for kernel, name in zip(kernels, plain, strict=True)
    ]
    return dict(zip(labels, kernels, strict=True))


def _told_apart(kernel: str, alike: Sequence[str]) -> str:
    """Return the label of one of several paths that end in the same name."""
    *_, name = PurePath(kernel).parts
    folders = [list(reversed(PurePath(path).parts[:-1])) for path in alike]
    for level in zip_longest(*folders, fillvalue=""):
        mine = level[alike.index(kernel)]
        if len(set(level)) == len(level) and mine not in ("", "/"):
            return f"{mine}/{name}"
    return kernel
