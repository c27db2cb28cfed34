/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options: ONE table from which parsing, ranges, sweeps, --help, the CSV's `opts` field, the wire
 * form and the checks of man page and completion are derived. A new option is one row and one
 * member of struct cfg.
 */
#ifndef BENCH_OPT_H
#define BENCH_OPT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "nearest.h"

enum cfg_mode { MODE_DIRECT, MODE_RPC };
enum cfg_op { OP_READ, OP_WRITE, OP_WRITE_IMM, OP_SEND };
enum cfg_mem { MEM_ANON, MEM_THP, MEM_HUGETLB, MEM_MEMFD, MEM_FILE };
enum cfg_prefault { PREFAULT_NO, PREFAULT_YES };
enum cfg_touch { TOUCH_OFF, TOUCH_WARM, TOUCH_COLD };
enum cfg_poll { POLL_BUSY, POLL_YIELD, POLL_EVENT };
enum cfg_post { POST_CHAIN, POST_SINGLE };
enum cfg_reply { REPLY_SEND, REPLY_IMM };
enum cfg_defer { DEFER_SLOT, DEFER_RECV };
enum cfg_timing { TIMING_OFF, TIMING_IO, TIMING_PHASES };
enum cfg_odp_prefetch { ODP_PREFETCH_OFF, ODP_PREFETCH_IO };

#define CFG_TEXT 256

/**
 * struct cfg - the settings of ONE run: every list of a sweep is expanded before. What is about the
 * whole invocation (--output, --help, HOST) is in struct opts only.
 */
struct cfg {
	char device[CFG_TEXT];	      /* -d; empty: the only, or first active one */
	char format[CFG_TEXT];	      /* a report's name: what stdout gets */
	char strategy[CFG_TEXT];      /* a registration strategy's name */
	char signal[CFG_TEXT];	      /* half, every:64, ... */
	char peer_strategy[CFG_TEXT]; /* rpc: the server's; empty: rpc_peer_strategy() knows */
	char peer_signal[CFG_TEXT];   /* likewise */
	char cpu[CFG_TEXT];	      /* place.h; empty: as topo_pin() does */
	char numa[CFG_TEXT];	      /* likewise; empty: wherever it is touched first */
	char mem_file[CFG_TEXT];      /* whose pages MEM_FILE takes; empty: a temporary one */
	char bind[CFG_TEXT];	      /* server: the control listener's address; empty: every one */
	uint64_t port;
	uint64_t mode;	   /* enum cfg_mode */
	uint64_t op;	   /* enum cfg_op */
	uint64_t poll;	   /* enum cfg_poll */
	uint64_t mem;	   /* enum cfg_mem */
	uint64_t prefault; /* enum cfg_prefault */
	uint64_t touch;	   /* enum cfg_touch; of the client's I/Os */
	uint64_t size;	   /* bytes of an I/O; rpc: 0 for request and reply alone */
	uint64_t frags;
	uint64_t frag_gap;	/* bytes between fragments */
	uint64_t misalign;	/* bytes from a page's begin to a buffer's */
	uint64_t depth;		/* I/Os in flight per QP */
	uint64_t sq_depth;	/* SQEs; 0: 2 * N * depth + 1, or what the device can */
	uint64_t peer_sq_depth; /* rpc: likewise, the server's */
	uint64_t qps;
	uint64_t working_set; /* bytes of memory that I/Os take in turn; 0: one piece per slot */
	uint64_t access;      /* enum access_order: in what order */
	uint64_t iters;	      /* per QP; 0: not limited by count (plan_make() knows when) */
	uint64_t duration_ns; /* 0: not limited by time; with both, whichever comes first */
	uint64_t warmup;      /* I/Os per QP before the clock starts */
	uint64_t rate;	      /* I/Os per second over all QPs; 0: closed loop */
	uint64_t timeout_ns;  /* without progress */
	uint64_t rnr_retry;
	uint64_t inline_max; /* bytes that a WR may carry; 0: none do */
	uint64_t max_sge;    /* of a WR; 0: as many as the device takes */
	uint64_t post;	     /* enum cfg_post */
	uint64_t revoke;     /* enum rxfer_revoke; rpc: how the peer's keys are taken back */
	uint64_t reply;	     /* enum cfg_reply; rpc: what carries it */
	uint64_t defer;	     /* enum cfg_defer; rpc: what waits for the proof that a SEND is done */
	uint64_t inline_threshold; /* rpc: I/Os of up to so many bytes are inside the messages */
	uint64_t timing;	   /* enum cfg_timing */
	uint64_t odp_prefetch;	   /* enum cfg_odp_prefetch; both ends, where they page on demand */
	uint64_t rcache_max;	   /* regions that a cache of them keeps */
	uint64_t rcache_max_bytes; /* likewise; 0: no limit */
	bool rcache_merge;	   /* what adjoins becomes one region */
	bool mw_renew;		   /* rpc: windows are made anew before a key comes back */
	bool unsafe_global_sink;   /* iWARP: what READs fill may lie open for longer than an I/O */
	bool bidir;		   /* the server issues too */
	uint64_t rd_atomic;	   /* READs in flight per QP; 0: as many as both devices can */
	uint64_t sl;		   /* service level; 0: the path's own */
	uint64_t max_sessions;	   /* server: at once; 0: no limit */
	uint64_t max_memory;	   /* server: bytes of all runs together; 0: as the machine has */
	bool verify;
	bool debug; /* trace what the ends tell each other */
};

enum opt_kind {
	OPT_FLAG,   /* bool, takes no value; "yes" or "no" on the wire */
	OPT_NUMBER, /* uint64_t, decimal */
	OPT_SIZE,   /* uint64_t bytes: 4096, 4k, 1m, 2g; powers of 1024, either case, KiB, kB */
	OPT_TIME,   /* uint64_t ns: 10, 10s, 500ms, 20us, 0.5h; a bare number is seconds */
	OPT_ENUM,   /* uint64_t, index into the names */
	OPT_NAME,   /* char[CFG_TEXT], one of list(), then check() (strategy, signal, format) */
	OPT_TEXT,   /* char[CFG_TEXT], what check() lets pass */
	OPT_HELP,   /* takes no value: sets opts.want_help and ends the parsing */
};

/* 64 TiB: half of what a process can address. */
#define MEMORY_MAX (1ULL << 46)

/* "all" in a sweep stands for all names, unless that is a name of its own (--signal all). */
enum opt_flags {
	OPT_SWEEP = 1,	   /* takes a comma list; runs are the cross product */
	OPT_WIRE = 2,	   /* the server needs it too */
	OPT_RUN = 4,	   /* belongs to a run, so to `opts`; else it is about files and peers */
	OPT_MULTI = 8,	   /* may be repeated, every text counts; in struct opts only */
	OPT_PERFTEST = 16, /* its letter is perftest's and means there what it means here */
	OPT_RPC = 32,	   /* outside rpc mode nothing but its default */
};

/* opt.offset of what struct cfg does not hold. */
#define OPT_NO_MEMBER UINT_MAX

enum opt_commands {
	CMD_SERVER = 1,
	CMD_CLIENT = 2,
	CMD_LOOPBACK = 4,
	CMD_DEVICES = 8,
	CMD_PROBE = 16,
	CMD_FENCE = 32,
};

/**
 * struct opt - one option.
 * @name, @letter: long, without dashes; 0: no letter
 * @offset:   in struct cfg, or OPT_NO_MEMBER
 * @flags:    enum opt_flags
 * @commands: where it may stand
 * @min, @max: numbers, sizes, times; 0 is legal besides where it is the default
 * @def:      default as text; NULL: empty or 0
 * @names:    OPT_ENUM: NULL-terminated
 * @list:     OPT_NAME, OPT_ENUM without @names: the i-th name, NULL behind the last
 * @suffix:   OPT_NAME: what follows the i-th name, "" or ":K"; NULL: nothing ever
 * @check:    OPT_NAME, OPT_TEXT: 0, or -EINVAL and the reason, without option and value; a name
 * that is not in the list comes here too, and is unknown where the answer is 0
 * @arg:      for help: BYTES; @help: one line
 */
struct opt {
	const char *name;
	char letter;
	enum opt_kind kind;
	unsigned int offset;
	unsigned int flags;
	unsigned int commands;
	uint64_t min, max;
	const char *def;
	const char *const *names;
	const char *(*list)(unsigned int i);
	const char *(*suffix)(unsigned int i);
	int (*check)(const char *text, char *why, unsigned int size);
	const char *arg;
	const char *help;
};

extern const struct opt opt_table[];
extern const unsigned int opt_table_count;

/**
 * struct opt_alias - a letter of perftest's for what is a value, or some, of an option here.
 * @letter: no row of opt_table has it
 * @option: the name of that option; whatever holds for it holds for the letter, such as that the
 *          last one given counts
 * @value:  what the letter stands for; with @arg: what goes before each value that is given to it
 * @arg:    for help, as in struct opt; NULL: the letter takes no value
 * @help:   what it is the same as
 */
struct opt_alias {
	char letter;
	const char *option;
	const char *value;
	const char *arg;
	const char *help;
};

extern const struct opt_alias opt_aliases[];
extern const unsigned int opt_aliases_count;

/** struct opt_given - the values given for one option, owned; 0: the default holds. */
struct opt_given {
	unsigned int n;
	char **text;
};

/**
 * struct opts - a parsed command line: the values given, as canonical texts, lists split but not
 * yet multiplied out. Owned by the caller; release with opts_free().
 */
struct opts {
	unsigned int command;	 /* one of enum opt_commands */
	char host[CFG_TEXT];	 /* client, probe, fence: the operand */
	struct opt_given *given; /* one for each row of opt_table */
	bool want_help;
};

/**
 * opts_parse() - parse the words behind the sub-command.
 * -s 4k, -s4k, --size 4k, --size=4k, -- ends options; the last of a repeated option holds, aliases
 * included (--output: all do). A value that begins with a dash must be a number or stand behind
 * "=". Every value is checked here (ranges, names, numbers); the rules between options are checked
 * for each run, by plan_make().
 * Where there is a --profile, its options are taken at the end, and are as if they had been given.
 * --help ends the parsing: what follows is not looked at, and HOST may be missing.
 * Returns 0; or -EINVAL (-ENOMEM) with @error one line: what is wrong, why, the nearest name or the
 * range, what to do. The line is printable ASCII, without a program prefix. Nothing to free then.
 */
int opts_parse(unsigned int command, int argc, char **argv, struct opts *out, char *error,
	       unsigned int error_size);
void opts_free(struct opts *o);

/**
 * opts_output() - the file of the @i-th --output, NULL behind the last.
 * Its format follows from its ending: output_format(). --format is what stdout gets, and stdout
 * gets a table where --format is not given, with --output or without.
 */
const char *opts_output(const struct opts *o, unsigned int i);

/**
 * opts_take() - one more option, as if "--NAME=VALUE" stood on the command line; @value NULL: just
 * "--NAME". @o has the command, and a row in @given for each of opt_table.
 * Returns as opts_parse(); what was given before is kept for the caller to free.
 */
int opts_take(struct opts *o, const char *name, const char *value, char *error,
	      unsigned int error_size);

/**
 * profile_apply() - the options of a profile (opt_profile.c), but for those that @o has already.
 * @name: with a slash, a file; else it is looked for in the directory that $RXFER_PROFILES names,
 * then in PROFILES_DIR.
 * Returns as opts_parse(), but @o is as before then: an error in a file begins with "FILE:LINE: ".
 */
int profile_apply(struct opts *o, const char *name, char *error, unsigned int error_size);

/** profile_take() - a profile's @text, which is overwritten; @file: for messages. As opts_take().
 */
int profile_take(struct opts *o, const char *file, char *text, char *error,
		 unsigned int error_size);

/** opts_text() - the @i-th text of an option that may be repeated, NULL behind the last. */
const char *opts_text(const struct opts *o, const char *name, unsigned int i);

/** output_format() - the report for a file with that ending (.csv, .json, .txt), NULL: another. */
const char *output_format(const char *path);

/**
 * opts_print() - the options given, canonical, in table order, for JSON: "--op read --size 4k,64k".
 * Printable ASCII that a shell reads back to the same words; cut where @size is too small.
 */
void opts_print(const struct opts *o, char *buf, unsigned int size);

/** opts_help() - the option part of a sub-command's help text; no line is above 96 columns. */
void opts_help(unsigned int command, FILE *out);

/** command_name() - "client" for CMD_CLIENT. */
const char *command_name(unsigned int command);

/** cfg_init() - all defaults: 1000 I/Os per QP, not limited by time. */
void cfg_init(struct cfg *c);

/**
 * cfg_set() - one option by name, from text (the wire form); one value, no list.
 * Returns 0; -ENOENT where struct cfg has no such option, -EINVAL, both with a one-line reason in
 * @why that names the option. @c is as before then.
 */
int cfg_set(struct cfg *c, const char *name, const char *text, char *why, unsigned int size);

/**
 * cfg_text() - the canonical text of one option's value ("4k", "500ms", "half"); cfg_set() reads it
 * back to the same value. @buf of CFG_TEXT bytes always suffices. Returns @buf.
 */
const char *cfg_text(const struct cfg *c, const struct opt *o, char *buf, unsigned int size);

/**
 * cfg_print() - every option with all of @flags that is not at its default, canonical, in table
 * order: "op=write size=4k signal=every:7". Two runs that differ in such an option never print
 * alike; 1280 bytes always suffice.
 */
void cfg_print(const struct cfg *c, unsigned int flags, char *buf, unsigned int size);

/**
 * cfg_check() - the rules between options: a second table of predicates and messages; rejects,
 * never rewrites. Returns 0, or -EINVAL with a one-line reason that names the options.
 */
int cfg_check(const struct cfg *c, char *why, unsigned int size);

/* For messages and help. Those that take @buf return it. */

/** opt_check() - what the row's check() says of @text, with option and value in front. 0 or
 * -EINVAL. */
int opt_check(const struct opt *o, const char *text, char *why, unsigned int size);

/** opt_range() - "1..2g", in the option's own units. */
const char *opt_range(const struct opt *o, char *buf, unsigned int size);

/** opt_name() - the @i-th of the names that an option may have; NULL behind the last. */
const char *opt_name(const struct opt *o, unsigned int i);

/** opt_names() - "all, io, every:K, half"; with "all" last where that means all of them. */
const char *opt_names(const struct opt *o, char *buf, unsigned int size);

/** opt_takes_all() - does "all" mean all of its names? */
bool opt_takes_all(const struct opt *o);

/** text_clean() - @text fit to be echoed: '?' for what is not printable ASCII, cut with "...". */
const char *text_clean(const char *text, char *buf, unsigned int size);
#define CLEAN_TEXT 48 /* a good @size: the line stays short */

#define TEXT_PRINTF __attribute__((format(printf, 3, 4)))

/** text_add() - printf behind what is in @buf; cut at @size. */
void text_add(char *buf, unsigned int size, const char *fmt, ...) TEXT_PRINTF;

/** text_error() - printf into @buf, cut at @size. Returns -EINVAL. */
int text_error(char *buf, unsigned int size, const char *fmt, ...) TEXT_PRINTF;

#endif
