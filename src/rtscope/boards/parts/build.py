"""
The parts of a board, each built into the cache if it is not there.

QEMU, our plugin for it, the agent and the kernel; user space and files have modules of
their own.
"""

import hashlib
from importlib import resources
from pathlib import Path

from rtscope.boards.catalogue import Arch, get_arch
from rtscope.boards.kernels import catalogue as kernels
from rtscope.boards.kernels import sourcekernel
from rtscope.boards.kernels.catalogue import KernelRow
from rtscope.boards.parts import aptroot, initrd, qemu
from rtscope.boards.parts.buildcontext import (
    AGENT_ARCHIVE,
    PLUGIN,
    BuildContext,
    content_part,
    part_of_packages,
)
from rtscope.boards.parts.cache import Part
from rtscope.host.errors import BoardError


def qemu_part(context: BuildContext, arch: Arch) -> Part:
    """Return QEMU for an architecture, from packages."""
    return part_of_packages(
        context,
        f"qemu-{arch.name}",
        # QEMU runs here, not on the board; its host is an x86-64 machine.
        lambda root: aptroot.resolve(
            arch.qemu_packages, arch="amd64", root=root, dependencies=True
        ),
        recipe=qemu.RECIPE,
        build=lambda work, root: qemu.build_qemu(work, root, arch),
    )


def plugin_part(context: BuildContext) -> Part:
    """Return our plugin; BoardError if it is not built."""
    name = "plugin-x86_64"  # like QEMU, for the host
    content = plugin_of_ours().read_bytes()
    inputs = {"plugin": _digest(content)}
    return content_part(context, name, PLUGIN, content, inputs=inputs)


def plugin_of_ours() -> Path:
    """Return the plugin of this rtscope; BoardError if it is not built."""
    file = Path(str(resources.files("rtscope").joinpath("plugins", PLUGIN)))
    if not file.is_file():
        raise BoardError(
            "the plugin for QEMU is not built: run make plugin in the source tree (an "
            "rtscope that was installed on another machine than x86-64 has none)"
        )
    return file


def agent_part(context: BuildContext, arch: Arch) -> Part:
    """Return the archive of the agent and of what starts it as first process."""
    name = f"agent-{arch.name}"
    agent = context.agent(arch.name).read_bytes()
    init = resources.files("rtscope.boards.parts").joinpath("init").read_bytes()
    archive = initrd.agent_archive(agent)
    digests = {"agent": _digest(agent), "init": _digest(init)}
    return content_part(context, name, AGENT_ARCHIVE, archive, inputs=digests)


def kernel_part(context: BuildContext, row: KernelRow) -> Part:
    """Return a kernel of a package, or one that is built from its recipe."""
    if row.recipe is not None:
        return sourcekernel.kernel_part(context, row.recipe)
    return part_of_packages(
        context,
        f"kernel-{row.name}-{row.arch}",
        lambda root: aptroot.resolve(
            [row.package],
            arch=get_arch(row.arch).debian,
            root=root,
            dependencies=False,
            suite=row.suite,
        ),
        # What stands for base and fragments keeps the keys of parts that are built.
        recipe=[kernels.RECIPE, list(row.modules), "", _digest(b"")],
        build=lambda work, root: kernels.keep_packaged(work, root, row),
    )


def own_image_part(context: BuildContext, path: Path, arch: Arch) -> Part:
    """Keep the user's own kernel image, so that a bundle has it too."""
    image = kernels.bootable_image(path, arch.name)

    digest = _digest(image)
    # A bundle knows a part by its name: one for each image.
    name = f"kernel-file-{digest[:16]}-{arch.name}"
    inputs, notes = {"image": digest}, {"release": None}
    return content_part(context, name, kernels.IMAGE, image, inputs=inputs, notes=notes)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
