/* SPDX-License-Identifier: MIT */
/*
 * emit - writes JSON Lines to a file descriptor, one object a line, "type" first.
 *
 * Lines are built in a fixed buffer and leave whole; a line longer than the buffer
 * leaves in pieces. The first error is kept in error and everything after it is
 * discarded: the caller asks once, at the end of a line.
 */
#ifndef EMIT_H
#define EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/wide.h"

/* What the agent's exit status says. A function that returns it has emitted the error. */
enum exit_status {
	EXIT_DONE = 0,
	EXIT_USAGE = 2,
	EXIT_INVALID = 3, /* no valid measurement; an error line says why */
};

struct emit {
	int fd;
	int error;      /* errno of the first failed write */
	int timeout_ms; /* how long to wait for a reader; -1: for ever */
	bool comma;
	size_t used;
	char buffer[16384];
};

void emit_init(struct emit *e, int fd);

/* For a reader at the far end of a network: when that is gone, nobody closes the pipe,
 * and a write would last for ever. Makes the descriptor non-blocking. */
void emit_set_timeout(struct emit *e, int timeout_ms);

/* Whether a line would be taken within the time: false if nobody reads. */
bool emit_ready(struct emit *e, int timeout_ms);

void emit_begin(struct emit *e, const char *type);
int emit_end(struct emit *e); /* returns 0 or -errno of the first failed write */

/* Ends a line that may wait for others: of many at once, each would cost a write. */
void emit_end_later(struct emit *e);

/* key NULL: a value in a list. */
void emit_int(struct emit *e, const char *key, int64_t value);
void emit_bool(struct emit *e, const char *key, bool value);
void emit_null(struct emit *e, const char *key);
void emit_text(struct emit *e, const char *key, const char *text);
void emit_bytes(struct emit *e, const char *key, const char *bytes, size_t size);
void emit_base64(struct emit *e, const char *key, const void *bytes, size_t size);
void emit_wide(struct emit *e, const char *key, const struct wide *value);

/* Whether emit_bytes() will write all of it as it is. */
bool emit_is_utf8(const char *bytes, size_t size);

void emit_open(struct emit *e, const char *key, char bracket); /* '{' or '[' */
void emit_close(struct emit *e, char bracket);                 /* '}' or ']' */

/* What to do: in a user namespace not sudo, which does not help there. */
void emit_remedy(struct emit *e, const char *remedy);

/* Emits the error line of the contract; returns EXIT_INVALID. */
enum exit_status emit_error(struct emit *e, const char *cause, const char *message,
			    const char *remedy);

#endif
