/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A server's end of the control connection: where it listens, and whom it turns away. */
#include "control_fixture.h"

static void listening_at_one_address(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	int listener = control_listen("127.0.0.1", 0);
	struct control c;

	(void)state;
	assert_int_equal(control_connect(&c, "127.0.0.1", port_of(listener), &wait), 0);
	control_close(&c);
	assert_int_equal(control_connect(&c, "127.0.0.2", port_of(listener), &wait), -ECONNREFUSED);
	close(listener);
	assert_int_equal(control_listen("192.0.2.7", 0), -EADDRNOTAVAIL);
	assert_non_null(strstr(rxfer_error(), "--bind 192.0.2.7"));
	assert_int_equal(control_listen("localhots", 0), -ENOENT);
	assert_non_null(strstr(rxfer_error(), "host localhots is not known"));
}

/* What the caller has said is never read, and must not cost it the reason. */
static void a_refused_caller_hears_the_reason(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	struct link l;

	(void)state;
	for (enum kind kind = IPV4; kind <= IPV6; kind++) {
		if (!make_link(&l, kind))
			continue;
		assert_int_equal(control_send(&l.a, MSG_HELLO, NULL, &wait), 0);
		rxfer_fail(EBUSY, "no room");
		control_refuse(&l.b);
		assert_int_equal(l.b.fd, -1);
		assert_int_equal(control_expect(&l.a, MSG_HELLO, NULL, &wait), -EREMOTEIO);
		assert_non_null(strstr(rxfer_error(), ": no room"));
		drop_link(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listening_at_one_address),
		cmocka_unit_test(a_refused_caller_hears_the_reason),
	};

	return cmocka_run_group_tests_name("unit_control_listen", tests, NULL, NULL);
}
