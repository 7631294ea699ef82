/* SPDX-License-Identifier: MIT */
/* section - what its kernel side and its program both know. */
#ifndef SECTION_H
#define SECTION_H

#define PREEMPTION_OFF  1
#define LOCK_HELD       2
#define LOCK_WAITED_FOR 3

#define PLANTED 4711 /* returned by the section, and by no ptrace() */

#define ROUNDS_PER_US   250   /* of two instructions of 2 ns each */
#define PATIENCE_ROUNDS 15000 /* some 100 us, until the other CPU is there */

#endif
