/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program on the double has no test around it: its first call starts the double with what the
 * environment says, and when it ends, violations and leaks are told and make its exit status 70.
 *
 *	FAKEHCA="max_sge=4,iwarp=1,devices=2"	members of struct fake_config and of device 0
 *	FAKEHCA_STATS=FILE			what was counted, a NAME=VALUE line each, at the end
 */
#include <stdio.h>
#include <unistd.h>
#include "fake_internal.h"

#define EXIT_UNCLEAN 70

enum kind { UINT, BOOL, SEED, ORDER };

#define SETTING(member, kind)                                       \
	{                                                           \
#member, offsetof(struct fake_config, member), kind \
	}
#define DEVICE(member, kind)                                                  \
	{                                                                     \
#member, offsetof(struct fake_config, device[0].member), kind \
	}
#define FAULT(member)                                                           \
	{#member, offsetof(struct fake_config, member.nth), UINT},              \
	{                                                                       \
#member "_with", offsetof(struct fake_config, member.err), UINT \
	}

static const struct {
	const char *name;
	size_t offset;
	enum kind kind;
} settings[] = {
	SETTING(devices, UINT),	     SETTING(seed, SEED),	    SETTING(auto_steps, UINT),
	SETTING(sq_delay, UINT),     SETTING(rq_delay, UINT),	    SETTING(read_lag, UINT),
	SETTING(rnr_delay, UINT),    SETTING(sq_extra, UINT),	    SETTING(early_sends, BOOL),
	SETTING(cq_order, ORDER),    SETTING(negative_errno, BOOL), SETTING(step_ns, UINT),
	SETTING(real_clock, BOOL),   DEVICE(iwarp, BOOL),	    DEVICE(down, BOOL),
	DEVICE(mtu, UINT),	     DEVICE(max_qp, UINT),	    DEVICE(max_qp_wr, UINT),
	DEVICE(max_cqe, UINT),	     DEVICE(max_sge, UINT),	    DEVICE(max_sge_rd, UINT),
	DEVICE(max_rd_atomic, UINT), DEVICE(max_mr, UINT),	    DEVICE(max_msg_size, UINT),
	DEVICE(max_mw, UINT),	     DEVICE(inv_flag_wrong, BOOL),  SETTING(fail_bind, UINT),
	DEVICE(max_inline, UINT),    DEVICE(sq_room, UINT),	    DEVICE(vendor_id, UINT),
	FAULT(fail_post_send),	     FAULT(fail_post_recv),	    FAULT(fail_reg_mr),
	FAULT(fail_create_qp),	     FAULT(fail_create_cq),	    FAULT(fail_poll),
	FAULT(fail_accept),	     FAULT(fail_resolve),	    FAULT(fail_wr),
	FAULT(fail_dereg_mr),	     FAULT(fail_alloc_mw),	    FAULT(fail_dealloc_mw),
	FAULT(fail_modify_qp),	     FAULT(fail_establish),	    DEVICE(infiniband, BOOL),
	DEVICE(sl_told, UINT),	     DEVICE(max_cq, UINT),	    DEVICE(closed, UINT),
	SETTING(event, UINT),	     SETTING(event_at, UINT),	    SETTING(stuck_reg_mr, UINT),
	SETTING(sq_real, UINT),	     SETTING(clock_read_ns, UINT),  SETTING(poll_every, UINT),
	DEVICE(mw_wide, BOOL),	     DEVICE(mw_stays, BOOL),	    DEVICE(odp, UINT),
	DEVICE(odp_implicit, BOOL),  DEVICE(no_advice, BOOL),	    DEVICE(mlx5, BOOL),
	DEVICE(mkey_tagless, BOOL),  DEVICE(mkey_blind, BOOL),	    FAULT(fail_create_mkey),
};

static bool set(struct fake_config *config, const char *name, const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 0);

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		void *at = (char *)config + settings[i].offset;

		if (strcmp(settings[i].name, name))
			continue;
		if (settings[i].kind == BOOL)
			*(bool *)at = value != 0;
		else if (settings[i].kind == SEED)
			*(uint64_t *)at = value;
		else if (settings[i].kind == ORDER)
			*(enum fake_cq_order *)at = (enum fake_cq_order)value;
		else
			*(uint32_t *)at = (uint32_t)value;
		return end != text && *end == '\0';
	}
	return false;
}

static void read_settings(struct fake_config *config, const char *text)
{
	char *copy = strdup(text), *rest = copy, *word, *equals;

	while (copy && (word = strsep(&rest, ","))) {
		if (*word == '\0')
			continue;
		equals = strchr(word, '=');
		if (equals)
			*equals = '\0';
		if (!equals || !set(config, word, equals + 1)) {
			fprintf(stderr, "fakehca: FAKEHCA: no such setting: %s\n", word);
			_exit(EXIT_UNCLEAN);
		}
	}
	free(copy);
}

static void write_stats(const char *path)
{
	const struct fake_stats *s = &fake.stats;
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!f)
		return;
#define LINE(member) fprintf(f, #member "=%llu\n", (unsigned long long)s->member)
	LINE(posts), LINE(sqes), LINE(recvs), LINE(sq_cqes), LINE(rq_cqes), LINE(lost_cqes);
	LINE(polls), LINE(empty), LINE(reg_mr), LINE(dereg_mr), LINE(bytes_read);
	LINE(bytes_written), LINE(bytes_sent), LINE(rnr_waits), LINE(steps);
	LINE(alloc_mw), LINE(dealloc_mw), LINE(binds), LINE(invalidates);
	LINE(advices), LINE(prefetched);
	LINE(create_mkey), LINE(destroy_mkey), LINE(umrs), LINE(umr_invalidates);
#undef LINE
	fclose(f);
}

static void at_end(void)
{
	char leaks[256];
	unsigned int n = fake_leaks(leaks, sizeof(leaks));

	write_stats(getenv("FAKEHCA_STATS"));
	if (n)
		fprintf(stderr, "fakehca: left behind: %s\n", leaks);
	if (n || fake.violations) {
		fflush(NULL);
		_exit(EXIT_UNCLEAN);
	}
}

/* A program that looks at the clock before it calls anything must see the one it will have. */
static __attribute__((constructor)) void start_early(void)
{
	if (!getenv("FAKEHCA"))
		return;
	fake_lock();
	fake_unlock();
}

/* Called with the lock held, by whoever is the first to call anything. */
void fake_env_start(void)
{
	const char *text = getenv("FAKEHCA");
	struct fake_config config;

	fake_config_init(&config);
	config.real_clock = true;
	config.auto_steps = 64;
	read_settings(&config, text ? text : "");
	if (config.devices > FAKE_DEVICES)
		config.devices = FAKE_DEVICES;
	fake_start_locked(&config);
	fake.loud = true;
	atexit(at_end);
}
