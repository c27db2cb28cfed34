/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The settings of a run on their way from client to server: they arrive as they were, and what a
 * peer may send instead is refused with the name of the member that is wrong.
 */
#include "session_fixture.h"

#define SECOND 1000000000ull

static bool same_settings(const struct cfg *a, const struct cfg *b)
{
	char text_a[CFG_TEXT], text_b[CFG_TEXT];

	for (unsigned int i = 0; i < opt_table_count; i++) {
		const struct opt *o = &opt_table[i];

		if (!(o->flags & OPT_WIRE))
			continue;
		cfg_text(a, o, text_a, sizeof(text_a));
		cfg_text(b, o, text_b, sizeof(text_b));
		if (strcmp(text_a, text_b)) {
			print_error("--%s: %s became %s\n", o->name, text_a, text_b);
			return false;
		}
	}
	return true;
}

/* Is it there and the same at the other end? What is the client's alone is at its default there. */
static bool config_travels(const struct cfg *cfg)
{
	struct cfg got = {.device = "none", .port = 1, .verify = true};
	json_t *body = travel(config_to_json(cfg, token));
	uint8_t got_token[RXFER_TOKEN_BYTES];
	int rc;

	rc = config_from_json(body, &got, got_token);
	json_decref(body);
	if (rc) {
		print_error("%s\n", rxfer_error());
		return false;
	}
	assert_string_equal(got.device, "");
	assert_int_equal(got.port, 18515);
	return same_settings(cfg, &got) && !memcmp(token, got_token, sizeof(token));
}

static void defaults_travel(void **state)
{
	struct cfg cfg;

	(void)state;
	cfg_init(&cfg);
	cfg.mode = MODE_DIRECT;
	assert_true(config_travels(&cfg));
}

static void random_signal(struct prop *p, char *out)
{
	unsigned int n = 0;

	while (rxfer_sig_list(n))
		n++;
	n = prop_range(p, 0, n - 1);
	if (rxfer_sig_list(n)->takes_arg)
		snprintf(out, CFG_TEXT, "%s:%u", rxfer_sig_list(n)->name, prop_range(p, 1, 1000));
	else
		snprintf(out, CFG_TEXT, "%s", rxfer_sig_list(n)->name);
}

static void random_value(struct prop *p, const struct opt *o, void *to)
{
	unsigned int names = 0;
	uint64_t span = o->max - o->min;

	while (opt_name(o, names))
		names++;
	if (o->kind == OPT_FLAG)
		*(bool *)to = prop_chance(p, 50);
	else if (o->kind == OPT_ENUM)
		*(uint64_t *)to = prop_range(p, 0, names - 1);
	else if (o->suffix)
		random_signal(p, to);
	else if (o->kind == OPT_NAME)
		snprintf(to, CFG_TEXT, "%s", opt_name(o, prop_range(p, 0, names - 1)));
	else
		*(uint64_t *)to =
			o->min + (prop_next(p) >> prop_range(p, 0, 63)) % (span + 1 ? span + 1 : 1);
}

/* What only rpc mode has would be refused in another; the row of --mode comes before it. */
static bool has_option(const struct cfg *c, const struct opt *o)
{
	return (o->flags & OPT_WIRE) && (!(o->flags & OPT_RPC) || c->mode == MODE_RPC);
}

/* Any wire option at any value. Of those that only the client has, the defaults. */
static void random_settings_travel(void **state)
{
	uint64_t first = prop_first_seed(), n = prop_count(4000, 100), done = 0;
	char why[512];
	struct prop p;

	(void)state;
	for (uint64_t i = 0; done < n; i++) {
		struct cfg cfg;

		prop_start(&p, first + i);
		cfg_init(&cfg);
		cfg.mode = MODE_DIRECT;
		for (unsigned int k = 0; k < opt_table_count; k++)
			if (has_option(&cfg, &opt_table[k]) && prop_chance(&p, 70))
				random_value(&p, &opt_table[k], (char *)&cfg + opt_table[k].offset);
		if (cfg_check(&cfg, why, sizeof(why)))
			continue;
		PROP_CHECK(&p, config_travels(&cfg));
		done++;
	}
}

/* --duration alone: the client knows when to end, the server need not. */
static void a_run_limited_by_time_travels(void **state)
{
	struct cfg cfg;

	(void)state;
	cfg_init(&cfg);
	cfg.mode = MODE_DIRECT;
	cfg.iters = 0;
	cfg.duration_ns = SECOND;
	assert_true(config_travels(&cfg));
}

/* The gap is the client's: the server's default must not be counted in its place. */
static void the_gap_is_the_clients(void **state)
{
	char why[512];
	struct cfg cfg;

	(void)state;
	cfg_init(&cfg);
	cfg.mode = MODE_DIRECT;
	cfg.frag_gap = 0;
	cfg.frags = 1024;
	cfg.depth = 65536;
	cfg.qps = 1024;
	assert_int_equal(cfg_check(&cfg, why, sizeof(why)), 0);
	assert_true(config_travels(&cfg));
}

/* A good configuration, to be spoilt. */
static json_t *good_config(void)
{
	struct cfg cfg;

	cfg_init(&cfg);
	cfg.mode = MODE_DIRECT;
	return config_to_json(&cfg, token);
}

/* Refused with @err and @part in the reason; takes the reference. False where not. */
static bool refused(json_t *body, int err, const char *part)
{
	uint8_t got_token[RXFER_TOKEN_BYTES];
	struct cfg cfg;
	int rc;

	rxfer_fail(EIO, "stale");
	body = travel(body);
	rc = config_from_json(body, &cfg, got_token);
	if (rc == -err)
		assert_says(part);
	else
		print_error("%d instead of %d (%s): %.300s\n", rc, -err, part,
			    json_string_value(json_object_get(body, "token")));
	json_decref(body);
	return rc == -err;
}

static json_t *with_token(json_t *value)
{
	json_t *body = good_config();

	json_object_set_new(body, "token", value);
	return body;
}

static void malformed_tokens(void **state)
{
	static const char good[] = "00112233445566778899aabbccddeeff";
	json_t *body = good_config();
	char text[sizeof(good) + 1];

	(void)state;
	json_object_del(body, "token");
	assert_true(refused(body, EBADMSG, "token"));
	assert_true(refused(with_token(json_null()), EBADMSG, "token"));
	assert_true(refused(with_token(json_integer(7)), EBADMSG, "token"));
	assert_true(refused(with_token(json_array()), EBADMSG, "token"));
	for (size_t n = 0; n < sizeof(good) - 1; n++) {
		snprintf(text, sizeof(text), "%.*s", (int)n, good);
		assert_true(refused(with_token(json_string(text)), EBADMSG, "token"));
	}
	snprintf(text, sizeof(text), "%s0", good);
	assert_true(refused(with_token(json_string(text)), EBADMSG, "token"));
}

/* Every character counts: none is taken for white space, a sign or a prefix. */
static void tokens_that_are_not_hex(void **state)
{
	static const char others[] = "gzGZ/:@`xX +-.\t";
	char text[2 * RXFER_TOKEN_BYTES + 1];

	(void)state;
	for (const char *c = others; *c; c++) {
		for (size_t at = 0; at < 2 * RXFER_TOKEN_BYTES; at++) {
			memset(text, '0', sizeof(text) - 1);
			text[sizeof(text) - 1] = '\0';
			text[at] = *c;
			assert_true(refused(with_token(json_string(text)), EBADMSG, "token"));
		}
	}
}

static json_t *with_option(const char *name, json_t *value)
{
	json_t *body = good_config();

	json_object_set_new(json_object_get(body, "options"), name, value);
	return body;
}

static void options_out_of_range(void **state)
{
	static const char *const bad[][2] = {
		{"size", "0"},
		{"size", "2147483649"},
		{"size", "9223372036854775808"},
		{"size", "-1"},
		{"size", ""},
		{"size", "4k,8k"},
		{"size", "all"},
		{"frags", "0"},
		{"frags", "1025"},
		{"depth", "0"},
		{"depth", "65537"},
		{"qps", "0"},
		{"qps", "16385"},
		{"qps", "18446744073709551617"},
		{"sq-depth", "1048577"},
		{"iters", "1000000000001"},
		{"rnr-retry", "8"},
		{"timeout", "0"},
		{"timeout", "99ms"},
		{"timeout", "2h"},
		{"op", "erase"},
		{"op", ""},
		{"mode", "rpc2"},
		{"poll", "never"},
		{"verify", "maybe"},
		{"strategy", "none-such"},
		{"strategy", "all"},
		{"signal", "every"},
		{"signal", "every:0"},
		{"signal", "half:2"},
		{"depth", "1\n"},
		{"depth", " 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(
			refused(with_option(bad[i][0], json_string(bad[i][1])), EINVAL, bad[i][0]));
}

static void a_very_long_value(void **state)
{
	static char text[100000];

	(void)state;
	memset(text, '7', sizeof(text) - 1);
	assert_true(refused(with_option("size", json_string(text)), EINVAL, "size"));
	assert_true(refused(with_option("strategy", json_string(text)), EINVAL, "strategy"));
	assert_true(refused(with_option("signal", json_string(text)), EINVAL, "signal"));
	memcpy(text, "every:", 6);
	assert_true(refused(with_option("signal", json_string(text)), EINVAL, "signal"));
}

static void options_that_are_no_text(void **state)
{
	(void)state;
	assert_true(refused(with_option("size", json_integer(4096)), EBADMSG, "size"));
	assert_true(refused(with_option("verify", json_true()), EBADMSG, "verify"));
	assert_true(refused(with_option("depth", json_null()), EBADMSG, "depth"));
	assert_true(refused(with_option("op", json_array()), EBADMSG, "op"));
	assert_true(refused(with_option("op", json_object()), EBADMSG, "op"));
}

static void unknown_options(void **state)
{
	(void)state;
	assert_true(refused(with_option("speed", json_string("high")), EINVAL, "speed"));
	assert_true(refused(with_option("", json_string("x")), EINVAL, "setting"));
	assert_true(refused(with_option("help", json_string("yes")), EINVAL, "help"));
	assert_true(refused(with_option("output", json_string("/x.csv")), EINVAL, "output"));
}

/* A name goes into the server's log: no byte of it may steer a terminal. */
static void rude_names(void **state)
{
	(void)state;
	assert_true(refused(with_option("a\x1b[2J\n", json_string("x")), EINVAL, "a?[2J?"));
	assert_true(refused(with_option("a\x1b[2J\n", json_integer(1)), EBADMSG, "a?[2J?"));
}

static void contradictions(void **state)
{
	json_t *body = with_option("frags", json_string("16"));

	(void)state;
	json_object_set_new(json_object_get(body, "options"), "size", json_string("8"));
	assert_true(refused(json_incref(body), EINVAL, "--frags 16"));
	assert_true(refused(body, EINVAL, "--size 8"));
	body = with_option("sq-depth", json_string("8"));
	json_object_set_new(json_object_get(body, "options"), "signal", json_string("every:9"));
	assert_true(refused(body, EINVAL, "every:9"));
}

/* No options at all are not the same as the defaults. */
static void no_options(void **state)
{
	json_t *body = good_config();

	(void)state;
	json_object_set_new(body, "options", json_array());
	assert_true(refused(body, EBADMSG, "options"));
	body = good_config();
	json_object_set_new(body, "options", json_string("size=4k"));
	assert_true(refused(body, EBADMSG, "options"));
	body = good_config();
	json_object_del(body, "options");
	assert_true(refused(body, EBADMSG, "options"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_travel),
		cmocka_unit_test(random_settings_travel),
		cmocka_unit_test(a_run_limited_by_time_travels),
		cmocka_unit_test(the_gap_is_the_clients),
		cmocka_unit_test(malformed_tokens),
		cmocka_unit_test(tokens_that_are_not_hex),
		cmocka_unit_test(options_out_of_range),
		cmocka_unit_test(a_very_long_value),
		cmocka_unit_test(options_that_are_no_text),
		cmocka_unit_test(unknown_options),
		cmocka_unit_test(rude_names),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(no_options),
	};

	return cmocka_run_group_tests_name("unit_session", tests, NULL, NULL);
}
