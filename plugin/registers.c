/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "registers.h"

#include <string.h>

static struct gbytearray *emptied(void)
{
	static struct gbytearray *bytes;

	if (!bytes)
		bytes = g_byte_array_new();
	return g_byte_array_set_size(bytes, 0);
}

struct qemu_plugin_register *registers_find(const char *name)
{
	struct garray *list = qemu_plugin_get_registers();
	const struct qemu_register_name *entry = (const void *)list->data;
	struct qemu_plugin_register *found = NULL;

	for (unsigned int i = 0; i < list->len && !found; i++)
		if (strcmp(entry[i].name, name) == 0)
			found = entry[i].handle;
	g_array_free(list, true);
	return found;
}

/* All boards are little-endian, as are the hosts. */
static bool take(const struct gbytearray *bytes, uint64_t *out)
{
	if (!bytes->len || bytes->len > sizeof(*out))
		return false;
	*out = 0;
	memcpy(out, bytes->data, bytes->len);
	return true;
}

bool registers_read(struct qemu_plugin_register *handle, uint64_t *out)
{
	struct gbytearray *bytes = emptied();

	return handle && qemu_plugin_read_register(handle, bytes) > 0 &&
	       take(bytes, out);
}

bool registers_read_memory(uint64_t address, unsigned int size, uint64_t *out)
{
	struct gbytearray *bytes = emptied();

	return qemu_plugin_read_memory_vaddr(address, bytes, size) && take(bytes, out);
}

bool registers_copy_memory(uint64_t address, unsigned int size, void *out)
{
	struct gbytearray *bytes = emptied();

	if (!qemu_plugin_read_memory_vaddr(address, bytes, size) || bytes->len != size)
		return false;
	memcpy(out, bytes->data, size);
	return true;
}
