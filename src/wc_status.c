/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the status of a failed completion means on a reliable connection: its name, what is most
 * likely behind it, and what to do. Cause and remedy have to stay short: with everything else that
 * a failure says they are kept in conn->broken_why.
 */
#include "internal.h"

#define STATUS(name, cause, remedy) [IBV_WC_##name] = {"IBV_WC_" #name, {cause, remedy}}

static const struct {
	const char *name;
	struct rxfer_reason reason;
} statuses[] = {
	STATUS(SUCCESS, "it did not fail", "report this as a bug"),
	STATUS(LOC_LEN_ERR, "a message longer than the RECV's buffer, or than the device can",
	       "use a smaller --size"),
	STATUS(LOC_QP_OP_ERR, "the device could not carry it out",
	       "look at its link, and for its driver in dmesg"),
	STATUS(LOC_EEC_OP_ERR, "belongs to datagrams, which are not used", "suspect the driver"),
	STATUS(LOC_PROT_ERR, "our own memory is not registered for it",
	       "if --strategy global does it too, suspect the driver"),
	STATUS(WR_FLUSH_ERR, "the peer closed the connection, or an earlier error did",
	       "see what the peer says"),
	STATUS(MW_BIND_ERR, "a memory window was refused: its key, bounds or rights",
	       "use another --strategy"),
	STATUS(BAD_RESP_ERR, "the peer's device answered with what was not asked for",
	       "suspect a driver or firmware"),
	STATUS(LOC_ACCESS_ERR, "what arrived may not be written into our memory",
	       "if --strategy global does it too, suspect the driver"),
	STATUS(REM_INV_REQ_ERR, "the peer's device refused it: too long, or not allowed",
	       "use a smaller --size, or --rd-atomic 1"),
	STATUS(REM_ACCESS_ERR, "the peer's memory is not open to us there: key or bounds",
	       "see whether the peer has ended its run"),
	STATUS(REM_OP_ERR, "the peer's device could not carry it out",
	       "see what the peer says, and dmesg there"),
	STATUS(RETRY_EXC_ERR, "the peer no longer answers: gone, or its link is down",
	       "ping it from this device's interface"),
	STATUS(RNR_RETRY_EXC_ERR, "the peer had no RECV posted",
	       "use a larger --rnr-retry (7: for ever)"),
	STATUS(LOC_RDD_VIOL_ERR, "belongs to datagrams, which are not used", "suspect the driver"),
	STATUS(REM_INV_RD_REQ_ERR, "belongs to datagrams, which are not used",
	       "suspect the driver"),
	STATUS(REM_ABORT_ERR, "the peer's device gave it up", "see dmesg there"),
	STATUS(INV_EECN_ERR, "belongs to datagrams, which are not used", "suspect the driver"),
	STATUS(INV_EEC_STATE_ERR, "belongs to datagrams, which are not used", "suspect the driver"),
	STATUS(FATAL_ERR, "the device has failed", "see dmesg; reload its driver, or reset it"),
	STATUS(RESP_TIMEOUT_ERR, "no answer came in time", "look at the link, and at the peer"),
	STATUS(GENERAL_ERR, "the device does not say more",
	       "look the vendor's number up, and see dmesg"),
	STATUS(TM_ERR, "belongs to tag matching, which is not used", "suspect the driver"),
	STATUS(TM_RNDV_INCOMPLETE, "belongs to tag matching, which is not used",
	       "suspect the driver"),
};

static bool known(enum ibv_wc_status status)
{
	return (unsigned int)status < sizeof(statuses) / sizeof(statuses[0]);
}

const char *rxfer_wc_name(enum ibv_wc_status status)
{
	return known(status) ? statuses[status].name : "an unknown status";
}

struct rxfer_reason rxfer_wc_reason(enum ibv_wc_status status)
{
	static const struct rxfer_reason none = {"it is none of the verbs' own",
						 "suspect the driver"};

	return known(status) ? statuses[status].reason : none;
}
