/* SPDX-License-Identifier: MIT */
/* Lists of indices as settings have them: 0,2-5. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "journal/knob.h"
#include "options.h"

#define MAX_INDEX (64 * KNOB_STRIDE) /* more interrupts than there can be */

int options_next_range(const char **list, int *from, int *to)
{
	char *end;

	if (!**list)
		return 0;
	if (!isdigit((unsigned char)**list))
		return -EINVAL;
	*from = *to = (int)strtol(*list, &end, 10);
	if (*end == '-' && isdigit((unsigned char)end[1]))
		*to = (int)strtol(end + 1, &end, 10);
	if (*from < 0 || *to < *from || *to > MAX_INDEX)
		return -EINVAL;
	if (*end == ',' && end[1])
		end++;
	else if (*end)
		return -EINVAL;
	*list = end;
	return 1;
}

bool options_is_list(const char *text)
{
	int from, to, more = *text ? 1 : 0;

	while (more > 0)
		more = options_next_range(&text, &from, &to);
	return more == 0 && !*text;
}
