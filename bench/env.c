/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a figure says anything about hardware: software RDMA tells by its driver, an emulated CPU
 * by its model name (QEMU's translator), counted virtual time by a word that scripts/rxe-vm puts on
 * its guest's kernel command line.
 */
#include "config.h"
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include "env.h"

/* The first line of @path that contains @word (NULL: any) into @buf, or "". */
static void find_line(const char *path, const char *word, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = '\0';
	if (!f)
		return;
	while (fgets(buf, (int)size, f)) {
		buf[strcspn(buf, "\n")] = '\0';
		if (!word || strstr(buf, word))
			break;
		buf[0] = '\0';
	}
	fclose(f);
}

void env_host(char *buf, size_t size)
{
	struct utsname u;

	snprintf(buf, size, "%s", uname(&u) ? "" : u.nodename);
}

void env_boot(char *buf, size_t size)
{
	find_line("/proc/sys/kernel/random/boot_id", NULL, buf, size);
}

static void add(char *list, size_t size, const char *what)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? " + " : "", what);
}

static void emulation(char *buf, size_t size, const struct rxfer_dev_info *dev)
{
	char line[1024];

	buf[0] = '\0';
	if (!strcmp(dev->driver, "fake"))
		add(buf, size, "test double");
	else if (dev->software)
		add(buf, size, "software RDMA");
	find_line("/proc/cpuinfo", "QEMU TCG CPU", line, sizeof(line));
	if (line[0])
		add(buf, size, "emulated CPU");
	find_line("/proc/cmdline", "rxfer.clock=virtual", line, sizeof(line));
	if (line[0])
		add(buf, size, "virtual time");
}

static void now_text(char *buf, size_t size)
{
	time_t t = time(NULL);
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
		buf[0] = '\0';
}

void env_fill(struct result *r, const struct rxfer_dev_info *dev)
{
	struct utsname u;

	snprintf(r->device, sizeof(r->device), "%s", dev->name);
	snprintf(r->driver, sizeof(r->driver), "%s", dev->driver);
	snprintf(r->fw, sizeof(r->fw), "%s", dev->fw);
	snprintf(r->transport, sizeof(r->transport), "%s", dev->transport);
	r->mtu = dev->mtu;
	snprintf(r->kernel, sizeof(r->kernel), "%s", uname(&u) ? "" : u.release);
	env_host(r->host, sizeof(r->host));
	emulation(r->emulated, sizeof(r->emulated), dev);
	snprintf(r->version, sizeof(r->version), "%s", PACKAGE_VERSION);
	now_text(r->started, sizeof(r->started));
}
