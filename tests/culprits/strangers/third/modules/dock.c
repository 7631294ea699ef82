// SPDX-License-Identifier: GPL-2.0
/* dock - harbor once more, because a module is inserted once in a boot. */
#include "harbor.c"
