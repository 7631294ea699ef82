/* SPDX-License-Identifier: MIT */
/* mark - has the plugin of a virtual board note its instruction count. */
#include "marker.h"

int main(void)
{
	marker_candidate(0, 0);
	return 0;
}
