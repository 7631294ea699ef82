/* SPDX-License-Identifier: MIT */
/* version - of the agent, and of the contract it speaks (format/README.md). */
#ifndef VERSION_H
#define VERSION_H

#define AGENT_VERSION   "0.2.0"
#define CONTRACT_SCHEMA 2

#endif
