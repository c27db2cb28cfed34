/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The result of one run: plain data, filled by the load, read by the reports. A figure that was not
 * measured is NAN (numbers) or NULL (texts) and shows as an empty field, never as a zero.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "hist.h"

#define RESULT_SCHEMA 1

enum result_status { RESULT_OK, RESULT_SKIPPED, RESULT_FAILED };

#define RESULT_TEXT 160 /* bytes of a short text field, with its NUL */

struct result {
	enum result_status status;
	char reason[512]; /* one line: why it was skipped or failed; empty for ok */

	/* What ran. */
	char strategy[RESULT_TEXT], engine[RESULT_TEXT], mode[RESULT_TEXT], op[RESULT_TEXT];
	char signal[RESULT_TEXT], revoke[RESULT_TEXT];
	char peer_strategy[RESULT_TEXT], peer_signal[RESULT_TEXT];
	double qps, depth, sq_depth, sq_wanted, sqe_max, bytes, frags, frag_gap;
	double iterations; /* I/Os completed, over all QPs */
	double seconds;

	/* Speed. MiB = 2^20 bytes; Mpps = 10^6 I/Os a second. */
	double bw_peak_MiBps, bw_avg_MiBps, msg_rate_Mpps;
	double lat_min_us, lat_p50_us, lat_p90_us, lat_p99_us, lat_p999_us, lat_p9999_us,
		lat_max_us;
	double lat_avg_us, lat_stdev_us;
	double samples;

	/* Counts, where they happen. */
	double sqe_per_io, peer_sqe_per_io, cqe_per_io, peer_cqe_per_io, recv_cqe_per_io;
	double posts_per_io, peer_posts_per_io, forced_signals, sq_peak, peer_sq_peak;
	double stalls_per_io, stall_us_per_io, map_us_per_io, unmap_us_per_io;
	double cpu_us_per_io, peer_cpu_us_per_io, poll_idle_pct;
	double pinned_bytes, mr_count;
	double exposed_bytes_peak, exposed_bytes_avg;
	char exposure_scope[RESULT_TEXT];
	double open_after_us_p50, open_after_us_p99, key_reuse_min;

	/* Conditions. */
	char verify[RESULT_TEXT], partial[RESULT_TEXT], clock[RESULT_TEXT];
	char device[RESULT_TEXT], driver[RESULT_TEXT], fw[RESULT_TEXT], transport[RESULT_TEXT];
	double mtu, rd_atomic;
	char kernel[RESULT_TEXT], host[RESULT_TEXT], peer_host[RESULT_TEXT], emulated[RESULT_TEXT];
	char version[RESULT_TEXT], started[RESULT_TEXT];
	char opts[1280];
	double peer_iterations; /* --bidir: I/Os that the server completed */

	/* Where things were found to be. */
	char cpu[RESULT_TEXT], mem_node[RESULT_TEXT];
	double mem_huge_pct;
	char peer_cpu[RESULT_TEXT], peer_mem_node[RESULT_TEXT];

	/* Send queue entries by opcode, and what RPC mode waits for. */
	double sqe_read_per_io, sqe_write_per_io, sqe_send_per_io;
	double peer_sqe_read_per_io, peer_sqe_write_per_io, peer_sqe_send_per_io;
	double unproven_per_io, unrevoked_per_io, unproven_us_per_io, unrevoked_us_per_io;
	double peer_stalls_per_io, peer_unproven_per_io, peer_stall_us_per_io;
	double sqe_bind_per_io, sqe_inv_per_io, overposts;

	/* What strategies do beside registering. */
	double copied_bytes_per_io, peer_copied_bytes_per_io, hit_pct, peer_hit_pct;
	double odp_faults_per_io, peer_odp_faults_per_io;

	/* What requests wait for at the server, besides the above. */
	double peer_unproven_us_per_io, peer_round_waits_per_io, peer_round_wait_us_per_io;

	/* Not a column: printed by the formats that can. */
	struct hist latency;
};

/** result_init() - every number NAN, every text empty, the histogram empty, status ok. */
void result_init(struct result *r);

/** result_status_name() - "ok", "skipped", "failed". */
const char *result_status_name(enum result_status status);

enum column_kind {
	COLUMN_SCHEMA, /* RESULT_SCHEMA */
	COLUMN_STATUS,
	COLUMN_TEXT,
	COLUMN_COUNT, /* a whole number */
	COLUMN_REAL,
};

/** struct column - one column of the CSV contract; its name is the key in JSON too. */
struct column {
	const char *name;
	enum column_kind kind;
	unsigned int offset; /* in struct result */
	unsigned int digits; /* COLUMN_REAL: behind the point */
};

/* The contract: this order for ever, new ones only at the end. */
extern const struct column result_columns[];
extern const unsigned int result_columns_count;

/**
 * result_format() - the text of column @c of @r as it stands in the CSV: C locale, empty where not
 * measured, commas, quotes, CR and LF in texts replaced by blanks or semicolons.
 * Returns @buf.
 */
const char *result_format(const struct column *c, const struct result *r, char *buf,
			  unsigned int size);

/**
 * result_number() - @value with @digits behind the point, in the C locale.
 * Empty if it is not finite or @buf is too small. Returns @buf.
 */
const char *result_number(double value, unsigned int digits, char *buf, unsigned int size);

/** result_text() - the text of a column as it is (status: its name); NULL for a number. */
const char *result_text(const struct column *c, const struct result *r);

/** result_value() - the number in a column; NAN where it is a text. */
double result_value(const struct column *c, const struct result *r);

/** result_column() - the column of that name, or NULL. */
const struct column *result_column(const char *name);

#endif
