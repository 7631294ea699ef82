"""Published latency tables with their source, and what does not add up in them."""

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
