/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The columns of a result, and how each is written. */
#include "result.h"

#include <locale.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA()                              \
	{                                     \
		"schema", COLUMN_SCHEMA, 0, 0 \
	}
#define STATUS()                                                            \
	{                                                                   \
		"status", COLUMN_STATUS, offsetof(struct result, status), 0 \
	}
#define TEXT(member)                                                     \
	{                                                                \
#member, COLUMN_TEXT, offsetof(struct result, member), 0 \
	}
#define COUNT(member)                                                     \
	{                                                                 \
#member, COLUMN_COUNT, offsetof(struct result, member), 0 \
	}
#define REAL(member, digits)                                                  \
	{                                                                     \
#member, COLUMN_REAL, offsetof(struct result, member), digits \
	}

const struct column result_columns[] = {
	SCHEMA(),
	STATUS(),
	TEXT(reason),
	TEXT(strategy),
	TEXT(engine),
	TEXT(mode),
	TEXT(op),
	TEXT(signal),
	TEXT(revoke),
	TEXT(peer_strategy),
	TEXT(peer_signal),
	COUNT(qps),
	COUNT(depth),
	COUNT(sq_depth),
	COUNT(sq_wanted),
	COUNT(sqe_max),
	COUNT(bytes),
	COUNT(frags),
	COUNT(frag_gap),
	COUNT(iterations),
	REAL(seconds, 6),
	REAL(bw_peak_MiBps, 2),
	REAL(bw_avg_MiBps, 2),
	REAL(msg_rate_Mpps, 6),
	REAL(lat_min_us, 3),
	REAL(lat_p50_us, 3),
	REAL(lat_p90_us, 3),
	REAL(lat_p99_us, 3),
	REAL(lat_p999_us, 3),
	REAL(lat_p9999_us, 3),
	REAL(lat_max_us, 3),
	REAL(lat_avg_us, 3),
	REAL(lat_stdev_us, 3),
	COUNT(samples),
	REAL(sqe_per_io, 4),
	REAL(peer_sqe_per_io, 4),
	REAL(cqe_per_io, 4),
	REAL(peer_cqe_per_io, 4),
	REAL(recv_cqe_per_io, 4),
	REAL(posts_per_io, 4),
	REAL(peer_posts_per_io, 4),
	COUNT(forced_signals),
	COUNT(sq_peak),
	COUNT(peer_sq_peak),
	REAL(stalls_per_io, 4),
	REAL(stall_us_per_io, 3),
	REAL(map_us_per_io, 3),
	REAL(unmap_us_per_io, 3),
	REAL(cpu_us_per_io, 3),
	REAL(peer_cpu_us_per_io, 3),
	REAL(poll_idle_pct, 2),
	COUNT(pinned_bytes),
	COUNT(mr_count),
	COUNT(exposed_bytes_peak),
	REAL(exposed_bytes_avg, 2),
	TEXT(exposure_scope),
	REAL(open_after_us_p50, 3),
	REAL(open_after_us_p99, 3),
	COUNT(key_reuse_min),
	TEXT(verify),
	TEXT(partial),
	TEXT(clock),
	TEXT(device),
	TEXT(driver),
	TEXT(fw),
	TEXT(transport),
	COUNT(mtu),
	COUNT(rd_atomic),
	TEXT(kernel),
	TEXT(host),
	TEXT(peer_host),
	TEXT(emulated),
	TEXT(version),
	TEXT(started),
	TEXT(opts),
	TEXT(cpu),
	TEXT(mem_node),
	REAL(mem_huge_pct, 1),
	TEXT(peer_cpu),
	TEXT(peer_mem_node),
	COUNT(peer_iterations),
	REAL(sqe_read_per_io, 4),
	REAL(sqe_write_per_io, 4),
	REAL(sqe_send_per_io, 4),
	REAL(peer_sqe_read_per_io, 4),
	REAL(peer_sqe_write_per_io, 4),
	REAL(peer_sqe_send_per_io, 4),
	REAL(unproven_per_io, 4),
	REAL(unrevoked_per_io, 4),
	REAL(unproven_us_per_io, 3),
	REAL(unrevoked_us_per_io, 3),
	REAL(peer_stalls_per_io, 4),
	REAL(peer_unproven_per_io, 4),
	REAL(peer_stall_us_per_io, 3),
	REAL(sqe_bind_per_io, 4),
	REAL(sqe_inv_per_io, 4),
	COUNT(overposts),
	REAL(copied_bytes_per_io, 2),
	REAL(peer_copied_bytes_per_io, 2),
	REAL(hit_pct, 3),
	REAL(peer_hit_pct, 3),
	REAL(odp_faults_per_io, 4),
	REAL(peer_odp_faults_per_io, 4),
	REAL(peer_unproven_us_per_io, 3),
	REAL(peer_round_waits_per_io, 4),
	REAL(peer_round_wait_us_per_io, 3),
};

const unsigned int result_columns_count = sizeof(result_columns) / sizeof(result_columns[0]);

static int is_number(const struct column *c)
{
	return c->kind == COLUMN_COUNT || c->kind == COLUMN_REAL;
}

void result_init(struct result *r)
{
	memset(r, 0, sizeof(*r));
	for (unsigned int i = 0; i < result_columns_count; i++) {
		const struct column *c = &result_columns[i];
		double unknown = NAN;

		if (is_number(c))
			memcpy((char *)r + c->offset, &unknown, sizeof(unknown));
	}
	hist_init(&r->latency);
}

const char *result_status_name(enum result_status status)
{
	static const char *const names[] = {"ok", "skipped", "failed"};

	return names[status];
}

/* A comma-decimal locale would break every column after the number: the thread borrows the C
 * locale. */
const char *result_number(double value, unsigned int digits, char *buf, unsigned int size)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t before = uselocale(c);
	double least = 0.5 * pow(10, -(double)digits);
	int n = 0;

	if (isfinite(value)) /* + no "-0.000" */
		n = snprintf(buf, size, "%.*f", (int)digits, fabs(value) < least ? 0 : value);
	if (n <= 0 || (unsigned int)n >= size) /* half a number would be another number */
		buf[0] = '\0';
	uselocale(before);
	if (c)
		freelocale(c);
	return buf;
}

static const char *format_text(const char *text, char *buf, unsigned int size)
{
	unsigned int n = 0;

	for (; text[n] && n + 1 < size; n++) {
		unsigned char ch = (unsigned char)text[n];

		buf[n] = ch == ',' ? ';' : (ch == '"' || ch < ' ' || ch == 0x7f) ? ' ' : text[n];
	}
	buf[n] = '\0';
	return buf;
}

double result_value(const struct column *c, const struct result *r)
{
	double value = NAN;

	if (is_number(c))
		memcpy(&value, (const char *)r + c->offset, sizeof(value));
	else if (c->kind == COLUMN_SCHEMA)
		value = RESULT_SCHEMA;
	return value;
}

const char *result_text(const struct column *c, const struct result *r)
{
	if (c->kind == COLUMN_STATUS)
		return result_status_name(r->status);
	return c->kind == COLUMN_TEXT ? (const char *)r + c->offset : NULL;
}

const char *result_format(const struct column *c, const struct result *r, char *buf,
			  unsigned int size)
{
	const char *text = result_text(c, r);

	return text ? format_text(text, buf, size)
		    : result_number(result_value(c, r), c->digits, buf, size);
}

const struct column *result_column(const char *name)
{
	for (unsigned int i = 0; i < result_columns_count; i++)
		if (!strcmp(result_columns[i].name, name))
			return &result_columns[i];
	return NULL;
}
