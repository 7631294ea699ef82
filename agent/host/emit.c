/* SPDX-License-Identifier: MIT */
#include "host/emit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "thread/rights.h"

void emit_init(struct emit *e, int fd)
{
	e->fd = fd;
	e->error = 0;
	e->timeout_ms = -1;
	e->comma = false;
	e->used = 0;
}

void emit_set_timeout(struct emit *e, int timeout_ms)
{
	e->timeout_ms = timeout_ms;
	fcntl(e->fd, F_SETFL, fcntl(e->fd, F_GETFL) | O_NONBLOCK);
}

bool emit_ready(struct emit *e, int timeout_ms)
{
	struct pollfd out = { .fd = e->fd, .events = POLLOUT };

	return poll(&out, 1, timeout_ms) == 1;
}

static void flush(struct emit *e)
{
	size_t done = 0;

	while (done < e->used && !e->error) {
		ssize_t n = write(e->fd, e->buffer + done, e->used - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN && !emit_ready(e, e->timeout_ms))
			e->error = ETIMEDOUT;
		else if (errno != EAGAIN && errno != EINTR)
			e->error = errno;
	}
	e->used = 0;
}

static void put(struct emit *e, const char *bytes, size_t size)
{
	while (size > 0) {
		size_t room = sizeof(e->buffer) - e->used;
		size_t n = size < room ? size : room;

		memcpy(e->buffer + e->used, bytes, n);
		e->used += n;
		bytes += n;
		size -= n;
		if (e->used == sizeof(e->buffer))
			flush(e);
	}
}

static void put_char(struct emit *e, char c)
{
	e->buffer[e->used++] = c;
	if (e->used == sizeof(e->buffer))
		flush(e);
}

/* Length of a well-formed UTF-8 sequence of 2 to 4 bytes at s, else 0. */
static size_t utf8_length(const unsigned char *s, size_t size)
{
	size_t need;
	uint32_t code;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		need = 2, code = s[0] & 0x1f;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		need = 3, code = s[0] & 0x0f;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		need = 4, code = s[0] & 0x07;
	else
		return 0;

	if (size < need)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	/* overlong forms, surrogates and beyond Unicode: not JSON */
	if ((need == 3 && (code < 0x800 || (code >= 0xd800 && code <= 0xdfff))) ||
	    (need == 4 && (code < 0x10000 || code > 0x10ffff)))
		return 0;
	return need;
}

bool emit_is_utf8(const char *bytes, size_t size)
{
	const unsigned char *s = (const unsigned char *)bytes;

	for (size_t i = 0; i < size;) {
		size_t n = s[i] < 0x80 ? 1 : utf8_length(s + i, size - i);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

/* Names of tasks and interrupts may hold anything; a byte that is no UTF-8 becomes '?'. */
static void put_string(struct emit *e, const char *bytes, size_t size)
{
	const unsigned char *s = (const unsigned char *)bytes;
	char escape[8];

	put_char(e, '"');
	for (size_t i = 0; i < size;) {
		if (s[i] == '"' || s[i] == '\\') {
			put_char(e, '\\');
			put(e, bytes + i++, 1);
		} else if (s[i] < 0x20 || s[i] == 0x7f) {
			snprintf(escape, sizeof(escape), "\\u%04x", s[i++]);
			put(e, escape, 6);
		} else if (s[i] < 0x80) {
			put(e, bytes + i++, 1);
		} else {
			size_t n = utf8_length(s + i, size - i);

			put(e, n ? bytes + i : "?", n ? n : 1);
			i += n ? n : 1;
		}
	}
	put_char(e, '"');
}

static void put_key(struct emit *e, const char *key)
{
	if (e->comma)
		put_char(e, ',');
	if (key) {
		put_string(e, key, strlen(key));
		put_char(e, ':');
	}
	e->comma = true;
}

void emit_begin(struct emit *e, const char *type)
{
	put_char(e, '{');
	e->comma = false;
	emit_text(e, "type", type);
}

void emit_end_later(struct emit *e)
{
	put(e, "}\n", 2);
}

int emit_end(struct emit *e)
{
	emit_end_later(e);
	flush(e);
	return -e->error;
}

void emit_int(struct emit *e, const char *key, int64_t value)
{
	/* by hand: a histogram has thousands of numbers, and printf() costs ten times it */
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char text[20]; /* -2^63 */
	char *digit = text + sizeof(text);

	do {
		*--digit = (char)('0' + rest % 10);
	} while (rest /= 10);
	if (value < 0)
		*--digit = '-';

	put_key(e, key);
	put(e, digit, (size_t)(text + sizeof(text) - digit));
}

void emit_bool(struct emit *e, const char *key, bool value)
{
	put_key(e, key);
	put(e, value ? "true" : "false", value ? 4 : 5);
}

void emit_null(struct emit *e, const char *key)
{
	put_key(e, key);
	put(e, "null", 4);
}

void emit_bytes(struct emit *e, const char *key, const char *bytes, size_t size)
{
	put_key(e, key);
	put_string(e, bytes, size);
}

void emit_text(struct emit *e, const char *key, const char *text)
{
	emit_bytes(e, key, text, strlen(text));
}

static void put_base64(struct emit *e, const unsigned char *in, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789+/";
	unsigned int bits = (unsigned int)in[0] << 16 |
			    (size > 1 ? (unsigned int)in[1] << 8 : 0) |
			    (size > 2 ? in[2] : 0);
	char text[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
			 size > 1 ? digits[bits >> 6 & 63] : '=',
			 size > 2 ? digits[bits & 63] : '=' };

	put(e, text, sizeof(text));
}

void emit_base64(struct emit *e, const char *key, const void *bytes, size_t size)
{
	const unsigned char *in = bytes;

	put_key(e, key);
	put_char(e, '"');
	for (size_t i = 0; i < size; i += 3)
		put_base64(e, in + i, size - i);
	put_char(e, '"');
}

/* Divides by ten in two 64-bit steps of 32 bits each: no __int128 on 32-bit ARM. */
static unsigned int take_digit(uint32_t part[4])
{
	uint64_t rest = 0;

	for (int i = 3; i >= 0; i--) {
		uint64_t now = rest << 32 | part[i];

		part[i] = (uint32_t)(now / 10);
		rest = now % 10;
	}
	return (unsigned int)rest;
}

void emit_wide(struct emit *e, const char *key, const struct wide *value)
{
	uint32_t part[4] = { (uint32_t)value->low, (uint32_t)(value->low >> 32),
			     (uint32_t)value->high, (uint32_t)(value->high >> 32) };
	char text[40]; /* 2^128 has 39 digits */
	char *digit = text + sizeof(text);

	do {
		*--digit = (char)('0' + take_digit(part));
	} while (part[0] | part[1] | part[2] | part[3]);

	emit_bytes(e, key, digit, (size_t)(text + sizeof(text) - digit));
}

void emit_open(struct emit *e, const char *key, char bracket)
{
	put_key(e, key);
	put_char(e, bracket);
	e->comma = false;
}

void emit_close(struct emit *e, char bracket)
{
	put_char(e, bracket);
	e->comma = true;
}

void emit_remedy(struct emit *e, const char *remedy)
{
	char elsewhere[RIGHTS_TEXT];

	emit_text(e, "remedy", rights_remedy(remedy, elsewhere));
}

enum exit_status emit_error(struct emit *e, const char *cause, const char *message,
			    const char *remedy)
{
	emit_begin(e, "error");
	emit_text(e, "message", message);
	emit_text(e, "cause", cause);
	emit_remedy(e, remedy);
	emit_end(e);
	return EXIT_INVALID;
}
