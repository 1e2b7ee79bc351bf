// SPDX-License-Identifier: BSD-3-Clause
// sums.c in C++.
#include "sums.c"
