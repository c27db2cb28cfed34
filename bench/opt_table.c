/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * THE table of options. The rules between them: opt_rules.c.
 *
 * The order of the rows is the order of --help, of the CSV's `opts` field and of the runs of a
 * sweep: the last swept row varies fastest. So --mode, --op, --size and --frags come first (the
 * slowest), and --strategy is the last of the swept ones, with --signal before it: what is to be
 * compared stands together.
 */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include "allow.h"
#include "opt.h"
#include "pages.h"
#include "place.h"
#include "report.h"
#include "rxfer.h"
#include "sig.h"

#define KIB  1024ULL
#define MIB  (1024 * KIB)
#define GIB  (1024 * MIB)
#define MS   1000000ULL
#define SEC  (1000 * MS)
#define HOUR (3600 * SEC)

#define DEVICE_MAX 63 /* bytes of a device's name in verbs, without the NUL */

static const char *const mode_names[] = {"direct", "rpc", NULL};
static const char *const op_names[] = {"read", "write", "write-imm", "send", NULL};
static const char *const prefault_names[] = {"no", "yes", NULL};
static const char *const touch_names[] = {"off", "warm", "cold", NULL};
static const char *const poll_names[] = {"busy", "yield", "event", NULL};
static const char *const post_names[] = {"chain", "single", NULL};
static const char *const reply_names[] = {"send", "imm", NULL};
static const char *const defer_names[] = {"slot", "recv", NULL};
static const char *const odp_prefetch_names[] = {"off", "io", NULL};
static const char *const access_names[] = {"seq", "rand", "zipf", NULL};
static const char *const timing_names[] = {"off", "io", "phases", NULL};

static const char *signal_name(unsigned int i)
{
	const struct rxfer_sig_ops *ops = rxfer_sig_list(i);

	return ops ? ops->name : NULL;
}

static const char *signal_suffix(unsigned int i)
{
	return rxfer_sig_list(i)->takes_arg ? ":K" : "";
}

/* Of a policy of ours, with a K that it has not or should have. */
static int wrong_k(const char *text, char *why, unsigned int size)
{
	const char *colon = strchr(text, ':');
	const struct rxfer_sig_ops *ops;
	char name[CLEAN_TEXT];
	uint32_t arg;

	if (!colon || !colon[1])
		return text_error(why, size, "K is missing; say it like every:64");
	snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
	if (!rxfer_sig_parse(name, &ops, &arg))
		return text_error(why, size, "only \"every\" takes a K, like every:64; say just %s",
				  name);
	if (strspn(colon + 1, "0") == strlen(colon + 1))
		return text_error(why, size,
				  "K is 0, so no work request would ask for a completion; take 1 "
				  "(each of them) or more");
	return text_error(why, size, "K is no number of 1..%u; say it like every:64",
			  RXFER_SQ_MAX_DEPTH);
}

/* One spelling for one policy ("every:7", never "every:07"): rows are compared by their text. */
static int signal_check(const char *text, char *why, unsigned int size)
{
	const struct rxfer_sig_ops *ops;
	const char *colon = strchr(text, ':');
	uint32_t arg;
	int rc = rxfer_sig_parse(text, &ops, &arg);

	if (rc == -EINVAL)
		return wrong_k(text, why, size);
	if (colon && colon[1] == '0')
		return text_error(why, size, "K begins with a 0; leave it out");
	return 0;
}

static const char *format_name(unsigned int i)
{
	const struct report_ops *ops = report_list(i);

	return ops ? ops->name : NULL;
}

static int device_check(const char *text, char *why, unsigned int size)
{
	size_t i, len = strlen(text);

	if (len == 0 || len > DEVICE_MAX)
		return text_error(why, size,
				  "a device's name has 1..%u characters; see rxfer-bench devices",
				  DEVICE_MAX);
	for (i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~' || strchr(",/\\\"'", text[i]))
			return text_error(why, size,
					  "not a device's name; see rxfer-bench devices");
	return 0;
}

static const struct {
	const char *ending, *format;
} output_endings[] = {{".csv", "csv"}, {".json", "json"}, {".txt", "table"}};

const char *output_format(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');
	size_t i;

	if (!dot || dot == base)
		return NULL;
	for (i = 0; i < sizeof(output_endings) / sizeof(output_endings[0]); i++)
		if (!strcasecmp(dot, output_endings[i].ending))
			return output_endings[i].format;
	return NULL;
}

static int output_check(const char *text, char *why, unsigned int size)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if (iscntrl((unsigned char)text[i]))
			return text_error(why, size,
					  "a control character in a file's name; rename it");
	if (output_format(text))
		return 0;
	text_error(why, size, "the ending tells the format; say FILE");
	for (i = 0; i < sizeof(output_endings) / sizeof(output_endings[0]); i++)
		text_add(why, size, "%s%s", i ? " or FILE" : "", output_endings[i].ending);
	return -EINVAL;
}

static int profile_check(const char *text, char *why, unsigned int size)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if (iscntrl((unsigned char)text[i]))
			return text_error(why, size,
					  "a control character in a file's name; rename it");
	return 0;
}

/* It is printed with the row. */
static int mem_file_check(const char *text, char *why, unsigned int size)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			return text_error(
				why, size,
				"a character that is not printable ASCII; make a link to it");
	return i ? 0 : text_error(why, size, "empty; leave it out for a temporary file");
}

static int bind_check(const char *text, char *why, unsigned int size)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(".:_%-", text[i]))
			return text_error(why, size,
					  "not an address or a name of this machine; say one like "
					  "192.0.2.7");
	return i ? 0 : text_error(why, size, "empty; leave it out to listen everywhere");
}

#define AT(member)   offsetof(struct cfg, member)
#define ALL_COMMANDS (ENDS | CMD_DEVICES | CMD_PROBE | CMD_FENCE)
#define RUNS	     (CMD_CLIENT | CMD_LOOPBACK)
#define ENDS	     (CMD_SERVER | RUNS)
#define REPORTS	     (RUNS | CMD_PROBE)
#define ASKS	     (CMD_PROBE | CMD_FENCE) /* of a server, what is no run */
#define SHARED	     (OPT_WIRE | OPT_RUN)

/* clang-format off */
const struct opt opt_table[] = {
	{ "device", 'd', OPT_TEXT, AT(device), OPT_PERFTEST, ALL_COMMANDS, .check = device_check,
	  .arg = "NAME", .help = "RDMA device (unset: the only one, or the first active one)" },
	{ "port", 'p', OPT_NUMBER, AT(port), OPT_PERFTEST, CMD_SERVER | CMD_CLIENT | ASKS, 1, 65535, "18515",
	  .arg = "PORT", .help = "TCP port of the control connection" },
	{ "mode", 0, OPT_ENUM, AT(mode), OPT_SWEEP | SHARED, RUNS, .def = "rpc", .names = mode_names,
	  .arg = "MODE", .help = "who moves the bytes: the client, or the server at its request" },
	{ "op", 0, OPT_ENUM, AT(op), OPT_SWEEP | SHARED, RUNS, .def = "read", .names = op_names,
	  .arg = "OP", .help = "what one I/O is" },
	{ "size", 's', OPT_SIZE, AT(size), OPT_SWEEP | SHARED | OPT_PERFTEST, RUNS | CMD_FENCE, 0, 2 * GIB, "64k",
	  .arg = "BYTES", .help = "bytes of one I/O (0: request and reply alone, in rpc mode only)" },
	{ "frags", 0, OPT_NUMBER, AT(frags), OPT_SWEEP | SHARED, RUNS, 1, 1024, "1",
	  .arg = "N", .help = "fragments that the memory of one I/O is in" },
	{ "frag-gap", 0, OPT_SIZE, AT(frag_gap), OPT_SWEEP | SHARED, RUNS, 0, GIB, "4k",
	  .arg = "BYTES", .help = "unused bytes between fragments (0: they adjoin)" },
	{ "misalign", 0, OPT_SIZE, AT(misalign), OPT_SWEEP | SHARED, RUNS, 0, 4095, .def = NULL,
	  .arg = "BYTES", .help = "buffers begin so far behind the begin of a page, at both ends" },
	{ "inline", 'I', OPT_SIZE, AT(inline_max), OPT_SWEEP | SHARED | OPT_PERFTEST, RUNS, 0, 64 * KIB, .def = NULL,
	  .arg = "BYTES", .help = "work requests of up to so many bytes carry them (0: none do)" },
	{ "max-sge", 0, OPT_NUMBER, AT(max_sge), OPT_SWEEP | SHARED, RUNS, 0, 1024, .def = NULL,
	  .arg = "N", .help = "fragments that a work request gathers at most (0: the device's limit)" },
	{ "post", 0, OPT_ENUM, AT(post), OPT_SWEEP | SHARED, RUNS, .def = "chain", .names = post_names,
	  .arg = "HOW", .help = "work requests of an I/O: in one chain, or each by a call of its own" },
	{ "inline-threshold", 0, OPT_SIZE, AT(inline_threshold), OPT_SWEEP | SHARED | OPT_RPC, RUNS, 0, 64 * KIB, .def = NULL,
	  .arg = "BYTES", .help = "rpc read, write: I/Os of up to so many bytes travel inside request or reply "
				  "and not by RDMA; not verbs' inline data, which is --inline (0: none do)" },
	{ "reply", 0, OPT_ENUM, AT(reply), OPT_SWEEP | SHARED | OPT_RPC, RUNS, .def = "send", .names = reply_names,
	  .arg = "HOW", .help = "rpc write: the reply is a SEND, or immediate data of the last WRITE" },
	{ "defer", 0, OPT_ENUM, AT(defer), OPT_SWEEP | SHARED | OPT_RPC, RUNS, .def = "slot", .names = defer_names,
	  .arg = "WHAT", .help = "rpc: what waits until the request's SEND is proven done: reuse of the slot "
				 "alone, or the I/O's completion, too" },
	{ "depth", 't', OPT_NUMBER, AT(depth), OPT_SWEEP | SHARED | OPT_PERFTEST, RUNS, 1, 65536, "16",
	  .arg = "N", .help = "I/Os in flight per QP" },
	{ "sq-depth", 0, OPT_NUMBER, AT(sq_depth), OPT_SWEEP | SHARED, RUNS, 0, MIB, .def = NULL,
	  .arg = "N", .help = "send queue entries per QP (0: 2*N*depth+1, N = those of one I/O)" },
	{ "peer-sq-depth", 0, OPT_NUMBER, AT(peer_sq_depth), OPT_SWEEP | SHARED | OPT_RPC, RUNS, 0, MIB, .def = NULL,
	  .arg = "N", .help = "rpc: send queue entries per QP of the server (0: as many as it needs)" },
	{ "qps", 'q', OPT_NUMBER, AT(qps), OPT_SWEEP | SHARED | OPT_PERFTEST, RUNS, 1, 16384, "1",
	  .arg = "N", .help = "queue pairs" },
	{ "rd-atomic", 0, OPT_NUMBER, AT(rd_atomic), OPT_SWEEP | SHARED, RUNS, 0, 255, .def = NULL,
	  .arg = "N", .help = "READs in flight per QP (0: as many as both devices can)" },
	{ "sl", 'S', OPT_NUMBER, AT(sl), OPT_SWEEP | SHARED | OPT_PERFTEST, RUNS, 0, 15, "0",
	  .arg = "N", .help = "service level (0: the path's own)" },
	{ "iters", 'n', OPT_NUMBER, AT(iters), OPT_SWEEP | SHARED | OPT_PERFTEST, RUNS, 0, 1000000000000ULL, "1000",
	  .arg = "N", .help = "I/Os per QP (0, and the default with -D: no limit)" },
	{ "duration", 'D', OPT_TIME, AT(duration_ns), OPT_SWEEP | SHARED | OPT_PERFTEST, RUNS, MS, 24 * HOUR, .def = NULL,
	  .arg = "TIME", .help = "length of a run; with -n it ends at whichever comes first" },
	{ "rate", 0, OPT_NUMBER, AT(rate), OPT_SWEEP | SHARED, RUNS, 0, 1000000000, .def = NULL,
	  .arg = "N", .help = "start so many I/Os a second over all QPs, and count latency from when they "
			      "were due (0: the next one starts when one is done)" },
	{ "bidir", 'b', OPT_FLAG, AT(bidir), SHARED | OPT_PERFTEST, RUNS,
	  .help = "both ends issue, on the same QPs" },
	{ "mem", 0, OPT_ENUM, AT(mem), OPT_SWEEP | SHARED, RUNS, .def = "anon", .list = pages_kind,
	  .arg = "KIND", .help = "pages that the memory of I/Os is made of, on both sides" },
	{ "mem-file", 0, OPT_TEXT, AT(mem_file), OPT_RUN, RUNS, .check = mem_file_check,
	  .arg = "FILE", .help = "the file that --mem file takes on this side: IT IS OVERWRITTEN (unset: a temporary one)" },
	{ "prefault", 0, OPT_ENUM, AT(prefault), OPT_SWEEP | SHARED, RUNS, .def = "yes", .names = prefault_names,
	  .arg = "WHAT", .help = "touch the memory of I/Os before the run (no: the first I/O on a page does)" },
	{ "odp-prefetch", 0, OPT_ENUM, AT(odp_prefetch), OPT_SWEEP | SHARED, RUNS, .def = "off", .names = odp_prefetch_names,
	  .arg = "WHAT", .help = "on-demand paging: nothing, or the pages of each I/O are asked for before it" },
	{ "touch", 0, OPT_ENUM, AT(touch), OPT_SWEEP | OPT_RUN, RUNS, .def = "off", .names = touch_names,
	  .arg = "HOW", .help = "before each I/O of the client, and before its clock starts, the CPU brings its "
				"memory into its caches, or out of all caches" },
	{ "revoke", 0, OPT_ENUM, AT(revoke), OPT_SWEEP | SHARED | OPT_RPC, RUNS | CMD_FENCE, .def = "auto", .list = rxfer_revoke_name,
	  .arg = "HOW", .help = "rpc: how an I/O's keys are taken from the server again (fence, unset: each way that a "
				     "strategy has)" },
	{ "mw-renew", 0, OPT_FLAG, AT(mw_renew), SHARED | OPT_RPC, RUNS,
	  .help = "rpc: make memory windows anew, between I/Os, before one of their 256 keys comes back" },
	{ "working-set", 0, OPT_SIZE, AT(working_set), OPT_SWEEP | OPT_RUN, RUNS, 4 * KIB, MEMORY_MAX, .def = NULL,
	  .arg = "BYTES", .help = "memory of the client that its I/Os go through, another piece each time (0: each "
				  "slot has one place)" },
	{ "access", 0, OPT_ENUM, AT(access), OPT_SWEEP | OPT_RUN, RUNS, .def = "seq", .names = access_names,
	  .arg = "ORDER", .help = "which piece of the working set is next: in order, any, or some more often" },
	{ "rcache-max", 0, OPT_NUMBER, AT(rcache_max), OPT_SWEEP | SHARED, RUNS, 1, MIB, "1024",
	  .arg = "N", .help = "rcache: regions that an end keeps at most" },
	{ "rcache-max-bytes", 0, OPT_SIZE, AT(rcache_max_bytes), OPT_SWEEP | SHARED, RUNS, 0, MEMORY_MAX, .def = NULL,
	  .arg = "BYTES", .help = "rcache: bytes in these at most (0: as many as the device can)" },
	{ "rcache-merge", 0, OPT_FLAG, AT(rcache_merge), SHARED, RUNS,
	  .help = "rcache: a new region takes in those that it adjoins" },
	{ "unsafe-global-sink", 0, OPT_FLAG, AT(unsafe_global_sink), SHARED, RUNS,
	  .help = "iWARP: also strategies by which all memory that READs fill lies open to the peer's writes" },
	{ "peer-signal", 0, OPT_NAME, AT(peer_signal), OPT_SWEEP | SHARED | OPT_RPC, RUNS, .def = "half",
	  .list = signal_name, .suffix = signal_suffix, .check = signal_check,
	  .arg = "POLICY", .help = "rpc: which work requests of the server ask for a completion" },
	{ "peer-strategy", 0, OPT_NAME, AT(peer_strategy), OPT_SWEEP | SHARED | OPT_RPC, RUNS, .def = NULL,
	  .list = rxfer_strategy_name,
	  .arg = "NAME", .help = "rpc: how the server registers its own memory (unset: global; bounce where it READs "
				 "over iWARP)" },
	{ "signal", 0, OPT_NAME, AT(signal), OPT_SWEEP | SHARED, RUNS, .def = "half",
	  .list = signal_name, .suffix = signal_suffix, .check = signal_check,
	  .arg = "POLICY", .help = "which work requests ask for a completion (K: every K-th)" },
	{ "strategy", 0, OPT_NAME, AT(strategy), OPT_SWEEP | SHARED, RUNS | CMD_FENCE, .def = "global",
	  .list = rxfer_strategy_name,
	  .arg = "NAME", .help = "how memory is registered (fence, unset: all)" },
	{ "warmup", 0, OPT_NUMBER, AT(warmup), SHARED, RUNS, 0, 1000000000, "16",
	  .arg = "N", .help = "I/Os per QP before the clock starts" },
	{ "verify", 0, OPT_FLAG, AT(verify), SHARED, RUNS,
	  .help = "check every byte that was moved; slow, not for figures" },
	{ "timing", 0, OPT_ENUM, AT(timing), SHARED, RUNS, .def = "io", .names = timing_names,
	  .arg = "WHAT", .help = "what the clock is read for: nothing, each I/O, also its map, unmap and stall" },
	{ "poll", 0, OPT_ENUM, AT(poll), SHARED, RUNS, .def = "busy", .names = poll_names,
	  .arg = "HOW", .help = "how to wait for completions" },
	{ "cpu", 0, OPT_TEXT, AT(cpu), OPT_RUN, ENDS | CMD_PROBE, .check = place_list_check,
	  .arg = "LIST", .help = "CPUs that this side's threads are bound to: 0,2,4-6, or near the device" },
	{ "numa", 0, OPT_TEXT, AT(numa), OPT_RUN, ENDS | CMD_PROBE, .check = place_node_check,
	  .arg = "NODE", .help = "NUMA node of all memory of this side: a number, or near the device" },
	{ "timeout", 0, OPT_TIME, AT(timeout_ns), SHARED, ENDS | ASKS, 100 * MS, HOUR, "10s",
	  .arg = "TIME", .help = "give up after so long without progress" },
	{ "bind", 0, OPT_TEXT, AT(bind), 0, CMD_SERVER, .check = bind_check,
	  .arg = "ADDRESS", .help = "listen for control connections there only (unset: everywhere)" },
	{ "allow", 0, OPT_TEXT, OPT_NO_MEMBER, OPT_MULTI, CMD_SERVER, .check = allow_check,
	  .arg = "CIDR", .help = "serve clients of this network only, as in 10.1.0.0/16,2001:db8::/32; "
				 "may be repeated (unset: all)" },
	{ "max-sessions", 0, OPT_NUMBER, AT(max_sessions), 0, CMD_SERVER, 0, 65536, "64",
	  .arg = "N", .help = "clients at once (0: no limit)" },
	{ "max-memory", 0, OPT_SIZE, AT(max_memory), 0, CMD_SERVER, 0, MEMORY_MAX, .def = NULL,
	  .arg = "BYTES", .help = "memory for the runs of all clients together (0: three quarters of what is "
				  "available)" },
	{ "rnr-retry", 0, OPT_NUMBER, AT(rnr_retry), SHARED, RUNS, 0, 7, "7",
	  .arg = "N", .help = "retries when the receiver is not ready (7: for ever)" },
	{ "format", 0, OPT_NAME, AT(format), 0, REPORTS | CMD_FENCE, .def = "table", .list = format_name,
	  .arg = "FORMAT", .help = "what is written to stdout" },
	{ "output", 'o', OPT_TEXT, OPT_NO_MEMBER, OPT_MULTI, REPORTS, .check = output_check,
	  .arg = "FILE", .help = "write to FILE too, by its ending: .csv, .json, .txt; may be repeated" },
	{ "profile", 0, OPT_TEXT, OPT_NO_MEMBER, 0, RUNS, .check = profile_check,
	  .arg = "PROFILE", .help = "options from a file, as far as they are not given here: the name of a profile, "
				    "or a path with a slash" },
	{ "debug", 0, OPT_FLAG, AT(debug), 0, ENDS | ASKS,
	  .help = "trace on stderr what the ends tell each other, and the events of rdma_cm" },
	{ "help", 'h', OPT_HELP, OPT_NO_MEMBER, OPT_PERFTEST, ALL_COMMANDS,
	  .help = "show this" },
};
/* clang-format on */
const unsigned int opt_table_count = sizeof(opt_table) / sizeof(opt_table[0]);

/* perftest's letters for what is one value, or a list, of an option here. */
const struct opt_alias opt_aliases[] = {
	{'a', "size",
	 "2,4,8,16,32,64,128,256,512,1k,2k,4k,8k,16k,32k,64k,128k,256k,512k,1m,2m,4m,8m", NULL,
	 "--size with every power of two from 2 to 8m"},
	{'Q', "signal", "every:", "K", "--signal every:K"},
	{'e', "poll", "event", NULL, "--poll event"},
};
const unsigned int opt_aliases_count = sizeof(opt_aliases) / sizeof(opt_aliases[0]);
