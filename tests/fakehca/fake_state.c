/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's one state: its life, what it recorded, and which objects are alive. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include "fake_internal.h"

struct fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

void fake_lock(void)
{
	pthread_mutex_lock(&fake.lock);
	if (!fake.started)
		fake_env_start();
}

void fake_unlock(void)
{
	pthread_mutex_unlock(&fake.lock);
}

/* ---- Life ---- */

void fake_device_init(struct fake_device *device, unsigned int i)
{
	static const char *const names[FAKE_DEVICES] = {"fake0", "fake1", "fake2", "fake3"};
	static const char *const addrs[FAKE_DEVICES] = {"10.86.0.1", "10.86.0.2", "10.86.0.3",
							"10.86.0.4"};

	*device = (struct fake_device){
		.name = names[i],
		.addr = addrs[i],
		.fw = "double",
		.vendor_id = 0x66616b, /* "fak" */
		.mtu = 1024,
		.max_qp = 1024,
		.max_qp_wr = 16384,
		.max_cq = 65536,
		.max_cqe = 65536,
		.max_sge = 30,
		.max_sge_rd = 30,
		.max_rd_atomic = 16,
		.max_mr = 65536,
		.max_mw = 65536,
		.max_msg_size = 1u << 30,
		.max_inline = 256,
		.sl_told = 15,
		.odp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		       IBV_ODP_SUPPORT_READ,
		.odp_implicit = true,
	};
}

void fake_config_init(struct fake_config *config)
{
	*config = (struct fake_config){.devices = 1, .step_ns = 100, .clock_read_ns = 1};
	for (unsigned int i = 0; i < FAKE_DEVICES; i++)
		fake_device_init(&config->device[i], i);
}

static void forget_objects(void)
{
	for (unsigned int kind = 0; kind < FAKE_KINDS; kind++)
		while (fake.objects[kind])
			fake_object_del(fake.objects[kind]);
	fake_mr_forget_slots();
	fake_mw_forget_slots();
	fake_mkey_forget_slots();
}

static uint32_t valid_mtu(uint32_t mtu)
{
	if (mtu < 256)
		return 256;
	return mtu > FAKE_MTU_MAX ? FAKE_MTU_MAX : mtu;
}

void fake_start_locked(const struct fake_config *config)
{
	forget_objects();
	fake.config = *config;
	for (unsigned int i = 0; i < FAKE_DEVICES; i++)
		fake.config.device[i].mtu = valid_mtu(config->device[i].mtu);
	fake.step = fake.cqe_order = fake.next_qp = 0;
	fake_clock_start();
	fake.random = config->seed;
	fake.qp_numbers = 0;
	fake.ports = 0;
	fake.stats = (struct fake_stats){0};
	fake.violations = 0;
	fake.reason[0] = '\0';
	fake_contexts_make();
	__atomic_store_n(&fake.started, true, __ATOMIC_RELEASE);
}

void fake_start(const struct fake_config *config)
{
	pthread_mutex_lock(&fake.lock);
	fake_start_locked(config);
	pthread_mutex_unlock(&fake.lock);
}

struct fake_config *fake_live(void)
{
	return &fake.config;
}

/* ---- Objects ---- */

void fake_object_add(struct fake_object *object, enum fake_kind kind,
		     void (*release)(struct fake_object *object))
{
	object->kind = kind;
	object->release = release;
	object->prev = NULL;
	object->next = fake.objects[kind];
	if (object->next)
		object->next->prev = object;
	fake.objects[kind] = object;
	fake.count[kind]++;
}

void fake_object_del(struct fake_object *object)
{
	if (object->prev)
		object->prev->next = object->next;
	else
		fake.objects[object->kind] = object->next;
	if (object->next)
		object->next->prev = object->prev;
	fake.count[object->kind]--;
	object->release(object);
}

unsigned int fake_leaks(char *text, size_t size)
{
	static const char *const names[FAKE_KINDS] = {
		"PDs",		 "memory regions",	"memory windows", "mkeys", "CQs",
		"QPs",		 "completion channels", "event channels", "ids",   "device lists",
		"address lists",
	};
	unsigned int sum = 0;
	size_t used = 0;

	if (size)
		text[0] = '\0';
	fake_lock();
	for (unsigned int i = 0; i < FAKE_KINDS; i++) {
		sum += fake.count[i];
		if (fake.count[i] && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%u %s",
						 used ? ", " : "", fake.count[i], names[i]);
	}
	fake_unlock();
	return sum;
}

/* ---- Records ---- */

void fake_violate(const char *format, ...)
{
	char text[sizeof(fake.violation[0])];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (fake.violations < FAKE_VIOLATIONS_KEPT)
		memcpy(fake.violation[fake.violations], text, sizeof(text));
	fake.violations++;
	if (fake.loud)
		fprintf(stderr, "fakehca: violation: %s\n", text);
}

void fake_no_event(int fd, const char *who)
{
	if (!(fcntl(fd, F_GETFL) & O_NONBLOCK))
		fake_violate("%s: there is no event; it would wait", who);
}

unsigned int fake_violations(void)
{
	return fake.violations;
}

const char *fake_violation(unsigned int i)
{
	return i < fake.violations && i < FAKE_VIOLATIONS_KEPT ? fake.violation[i] : NULL;
}

int fake_refuse(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fake.reason, sizeof(fake.reason), format, args);
	va_end(args);
	return err;
}

const char *fake_reason(void)
{
	return fake.reason;
}

const struct fake_stats *fake_stats(void)
{
	static _Thread_local struct fake_stats stats;

	fake_lock();
	stats = fake.stats;
	fake_unlock();
	return &stats;
}

int fake_fault(struct fake_fault *fault)
{
	if (fault->nth == 0 || --fault->nth)
		return 0;
	return fake_refuse(fault->err, "told to fail");
}

/* ---- Chance ---- */

/* xorshift64*; without a seed there is no chance, and the answer is 0. */
uint32_t fake_random(uint32_t below)
{
	uint64_t x = fake.random;

	if (x == 0 || below == 0)
		return 0;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	fake.random = x;
	return (uint32_t)((x * 0x2545f4914f6cdd1du >> 32) * below >> 32);
}
