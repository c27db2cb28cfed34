/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a server says of what happens: a line on stderr for each event. */
#ifndef BENCH_LOG_H
#define BENCH_LOG_H

#include <stdbool.h>
#include <stdint.h>

/**
 * log_timed() - do lines need the time? Not where @fd is the journal of systemd, which notes it
 * itself. @stream: of the environment, JOURNAL_STREAM; NULL: there is none. Terminals that systemd
 * started pass it on to commands whose stderr is elsewhere, so the file itself is looked at.
 */
bool log_timed(const char *stream, int fd);

/**
 * log_line() - one event, in one piece: threads log, too. All that is not printable ASCII becomes
 * '?', as peers have a say in it.
 */
void log_line(bool timed, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* struct log_gate - for events that a stranger can cause as often as it likes. */
struct log_gate {
	uint64_t next; /* rxfer_now() at which a line may follow */
	unsigned int kept_back;
};

/**
 * log_gate_open() - may there be a line @now? One a second. @kept_back: how many were not since
 * the one before.
 */
bool log_gate_open(struct log_gate *g, uint64_t now, unsigned int *kept_back);

#endif
