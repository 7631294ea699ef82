"""
Kernels that rtscope builds: recipe, source, patches, configuration.

    catalogue.py              every kernel that has a name
    recipes/                  the recipes: one TOML file each
    recipe.py                 a recipe: source, patches, configuration
    fragments/                fragments of configurations
    patches/                  series of patches
    source.py                 sources: fetched or copied, and identified
    tree.py                   source trees, and series of patches
    publishers.py, publishers.toml  where the maker publishes a missing source
    kconfig.py                symbols of Kconfig: dependencies, selections
    build.py, package.toml    kbuild driven by tuxmake; built kernels packed
    arches.toml               differences between the architectures of kernels
    resolved.py               settings that kbuild changed
    sourcekernel.py           a built kernel in the cache
"""
