"""Published latency tables with their sources and their inconsistencies."""

from rtscope.published.catalogue import (
    Figures,
    KernelKind,
    Note,
    Published,
    PublishedKernel,
    get_published,
    published_names,
)

__all__ = [
    "Figures",
    "KernelKind",
    "Note",
    "Published",
    "PublishedKernel",
    "get_published",
    "published_names",
]
