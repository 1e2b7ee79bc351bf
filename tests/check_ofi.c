/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves for src/comm/ofi.c: the environment is unchanged after an endpoint has been opened, or
 * could not be opened. */
#define _GNU_SOURCE
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/endpoint.h"

START_TEST(environment)
{
	static const char *const providers[] = {"tcp;ofi_rxm", "sockets", "no such"};
	struct kd_endpoint e;
	struct sigaction old, new;
	char address[KD_COMM_ADDRESS_BYTES], *before[1000];
	size_t n = 0, size;

	setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 1);
	unsetenv("FI_OFI_RXM_EAGER_LIMIT");
	ck_assert_int_eq(sigaction(SIGSEGV, NULL, &old), 0);
	for (; environ[n]; n++) {
		ck_assert_uint_lt(n, 1000);
		before[n] = environ[n];
	}
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(!kd_endpoint_open(&e, providers[i], "127.0.0.1", address, &size),
				 i < 2);
		kd_endpoint_stop(&e);
		kd_endpoint_close(&e);
		for (size_t k = 0; k <= n; k++)
			ck_assert_ptr_eq(environ[k], k < n ? before[k] : NULL);
	}
	/* The library's setting had its effect: psm and psm2 have installed no signal handlers. */
	ck_assert_int_eq(sigaction(SIGSEGV, NULL, &new), 0);
	ck_assert(new.sa_handler == old.sa_handler);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ofi");
	TCase *tcase = tcase_create("start");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, environment);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
