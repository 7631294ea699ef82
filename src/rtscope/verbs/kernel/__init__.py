"""
`rtscope kernel`: recipes, builds, packages, checks and verification of kernels.

    kernel.py  `list`, `show`, `patches`, `config`, `build`, `package`
    check.py   `check`: boots under load, kernel logs
    verify.py  `verify`: is this the intended kernel?
"""
