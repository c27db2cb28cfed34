/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What registering memory costs, by doing it: regions of 1 to 4096 pages, each several times, the
 * medians fitted by a line. What lies behind it differs: pages that are in memory already, pages
 * that the registration has to bring there, huge ones, and how many other regions there are.
 * Registrations go by the engine's own way, with the rights of memory that a peer may write.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "pages.h"
#include "probing.h"
#include "stats.h"

#define PAGES_MAX   4096
#define BYTES_MAX   (64u << 20) /* where pages are large, fewer of them */
#define SIZES	    7
#define REPEATS	    31
#define REPEATS_MIN 5
#define BUDGET_NS   80000000ull	  /* for the repeats of one size, once there are REPEATS_MIN */
#define HOLD_NS	    3000000000ull /* for making many regions */
#define KEYS	    256

enum backing { PREFAULTED, FIRST_TOUCH, HUGE_PAGES };

/* struct held - regions that only have to be there, all over one page. */
struct held {
	struct rxfer_mem **mem;
	unsigned int n;
	void *page;
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int add_region(struct probe *p, void *base, size_t len, struct rxfer_mem **out)
{
	return rxfer_mem_add(p->dev, base, len, RXFER_PEER_READ | RXFER_PEER_WRITE, out);
}

/* ---- Memory ---- */

/* Pages of the plain size whatever the kernel would prefer; NULL for none. */
static void *map(size_t len, enum backing backing)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (backing == HUGE_PAGES ? MAP_HUGETLB : 0);
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (base == MAP_FAILED)
		return NULL;
	if (backing != HUGE_PAGES)
		madvise(base, len, MADV_NOHUGEPAGE);
	if (backing != FIRST_TOUCH)
		memset(base, 1, len);
	return base;
}

static int no_memory(size_t len)
{
	return rxfer_fail(ENOMEM, "out of memory for %s to register", rxfer_size(len).s);
}

/* ---- Samples ---- */

static int sample(struct probe *p, enum backing backing, void *base, size_t len, double *reg,
		  double *dereg)
{
	void *fresh = backing == FIRST_TOUCH ? map(len, backing) : NULL;
	struct rxfer_mem *mem;
	uint64_t start, middle, end;
	int rc;

	if (backing == FIRST_TOUCH && !fresh)
		return no_memory(len);
	start = rxfer_now();
	rc = add_region(p, fresh ? fresh : base, len, &mem);
	middle = rxfer_now();
	if (!rc)
		rxfer_mem_del(mem);
	end = rxfer_now();
	if (fresh)
		munmap(fresh, len);
	*reg = (double)(middle - start);
	*dereg = (double)(end - middle);
	return rc;
}

/* The medians of one size, in ns. */
static int medians(struct probe *p, enum backing backing, void *base, size_t len, double *reg,
		   double *dereg)
{
	double regs[REPEATS], deregs[REPEATS];
	uint64_t start = rxfer_now();
	unsigned int n = 0;

	while (n < REPEATS && (n < REPEATS_MIN || rxfer_now() - start < BUDGET_NS)) {
		int rc = probe_stopped(p);

		if (!rc)
			rc = sample(p, backing, base, len, &regs[n], &deregs[n]);
		if (rc)
			return rc;
		n++;
	}
	*reg = stats_median(regs, n);
	*dereg = stats_median(deregs, n);
	return 0;
}

/* struct line - medians over sizes; @remark: what else is to be said, may be empty. */
struct line {
	const char *variant;
	double pages[SIZES], reg[SIZES], dereg[SIZES];
	unsigned int n;
	char remark[400];
};

static void add_line(struct probe *p, const char *what, const struct line *l, const double *ns,
		     const char *remark)
{
	struct probe_row fixed = {.value = NAN, .digits = 0, .unit = "ns"};
	struct probe_row each = {.value = NAN, .digits = 2, .unit = "ns/page"};
	struct fit fit = {.a = NAN, .b = NAN, .worst = NAN};

	snprintf(fixed.quantity, sizeof(fixed.quantity), "%s", what);
	snprintf(each.quantity, sizeof(each.quantity), "%s_per_page", what);
	snprintf(fixed.variant, sizeof(fixed.variant), "%s", l->variant);
	snprintf(each.variant, sizeof(each.variant), "%s", l->variant);
	stats_fit(l->pages, ns, l->n, &fit);
	fixed.value = fit.a;
	each.value = fit.b;
	probe_add(&p->rows, &fixed, "%.0f..%.0f pages, off by %.0f %% at most%s%s", l->pages[0],
		  l->pages[l->n - 1], 100 * fit.worst, remark[0] ? "; " : "", remark);
	probe_add(&p->rows, &each, "%s", "");
}

static void add_none(struct probe *p, const char *variant, const char *why)
{
	struct probe_row row = {.quantity = "registration", .value = NAN, .unit = "ns"};

	snprintf(row.variant, sizeof(row.variant), "%s", variant);
	probe_add(&p->rows, &row, "skipped: %s", why);
}

static size_t bytes_max(void)
{
	return page_size() * PAGES_MAX < BYTES_MAX ? page_size() * PAGES_MAX : BYTES_MAX;
}

/*
 * @step: bytes of the smallest region; the next is four times as large, or twice for huge pages.
 * Sizes that a limit forbids are left out, if there are smaller ones.
 */
static int measure(struct probe *p, enum backing backing, struct line *l, size_t step)
{
	void *base = map(bytes_max(), backing);
	int rc = 0;

	if (!base)
		return no_memory(bytes_max());
	for (size_t len = step; !rc && l->n < SIZES && len <= bytes_max();
	     len *= backing == HUGE_PAGES ? 2 : 4) {
		l->pages[l->n] = (double)(len / page_size());
		rc = medians(p, backing, base, len, &l->reg[l->n], &l->dereg[l->n]);
		l->n += !rc;
	}
	munmap(base, bytes_max());
	if (rc == -EINTR || (rc && l->n < 2))
		return rc;
	if (rc)
		snprintf(l->remark, sizeof(l->remark), "beyond: %.380s", rxfer_error());
	add_line(p, "registration", l, l->reg, l->remark);
	add_line(p, "deregistration", l, l->dereg, "");
	return 0;
}

static int measure_plain(struct probe *p, enum backing backing, const char *variant)
{
	struct line l = {.variant = variant};

	return measure(p, backing, &l, page_size());
}

static int measure_huge(struct probe *p)
{
	struct line l = {.variant = "huge pages"};
	struct huge_pool pool;
	char why[160];
	size_t huge;
	void *base;

	huge_pool_read(&pool);
	huge = pool.size;
	if (!huge || huge > bytes_max() / 2) {
		add_none(p, l.variant,
			 huge ? "the kernel's huge pages are too large"
			      : "the kernel has no huge pages");
		return 0;
	}
	base = map(bytes_max(), HUGE_PAGES);
	if (!base) {
		snprintf(why, sizeof(why), "needs %s of %zu KiB: see sysctl vm.nr_hugepages",
			 rxfer_count(bytes_max() / huge, "free huge page").s, huge / 1024);
		add_none(p, l.variant, why);
		return 0;
	}
	munmap(base, bytes_max());
	return measure(p, HUGE_PAGES, &l, huge);
}

/* ---- Many regions ---- */

static void let_go(struct held *h, unsigned int keep)
{
	while (h->n > keep)
		rxfer_mem_del(h->mem[--h->n]);
	if (keep)
		return;
	free(h->mem);
	if (h->page)
		munmap(h->page, page_size());
}

/*
 * Make @n regions; time may end it earlier, and so may a limit of the device or of memory: then
 * half of what there was is given back, so that the limit is none for what is measured next.
 */
static int hold(struct probe *p, unsigned int n, struct held *h)
{
	uint64_t start = rxfer_now();
	int rc = 0;

	*h = (struct held){.mem = calloc(n, sizeof(*h->mem)), .page = map(page_size(), PREFAULTED)};
	if (!h->mem || !h->page)
		return no_memory(page_size());
	while (!rc && h->n < n && rxfer_now() - start < HOLD_NS) {
		rc = probe_stopped(p);
		if (!rc)
			rc = add_region(p, h->page, page_size(), &h->mem[h->n]);
		h->n += !rc;
	}
	if (rc == -EINTR || h->n < 2)
		return rc;
	if (rc)
		let_go(h, h->n / 2);
	return 0;
}

static int measure_among(struct probe *p, unsigned int n)
{
	char variant[32];
	struct line l = {.variant = variant};
	struct held h;
	int rc = hold(p, n, &h);

	snprintf(variant, sizeof(variant), "%u alive", h.n);
	if (h.n < n)
		snprintf(l.remark, sizeof(l.remark), "time or a limit forbids %u", n);
	if (!rc)
		rc = measure(p, PREFAULTED, &l, page_size());
	let_go(&h, 0);
	return rc;
}

int probe_registration(struct probe *p)
{
	int rc = measure_plain(p, PREFAULTED, "prefaulted");

	if (!rc)
		rc = measure_plain(p, FIRST_TOUCH, "first touch");
	if (!rc)
		rc = measure_huge(p);
	if (!rc)
		rc = measure_among(p, 100);
	return rc ? rc : measure_among(p, 10000);
}

/* ---- Keys ---- */

static void add_deltas(struct probe *p, const char *variant, const uint32_t *keys, unsigned int n)
{
	struct delta delta[KEYS];
	unsigned int different = stats_deltas(keys, n, delta);

	if (n > 2 && different == n - 1) {
		struct probe_row none = {.quantity = "rkey_delta", .value = NAN};

		snprintf(none.variant, sizeof(none.variant), "%s", variant);
		probe_add(&p->rows, &none, "all of %u deltas differ", different);
		return;
	}
	for (unsigned int i = 0; i < different && i < 3; i++) {
		struct probe_row row = {.quantity = "rkey_delta", .value = delta[i].delta};

		snprintf(row.variant, sizeof(row.variant), "%s", variant);
		probe_add(&p->rows, &row, "%u of %u times, one of %s", delta[i].times, n - 1,
			  rxfer_count(different, "delta").s);
	}
}

/* Of regions that all stay, and of regions of which each goes before the next one comes. */
int probe_keys(struct probe *p)
{
	uint32_t keys[KEYS];
	struct held h;
	unsigned int n;
	int rc = hold(p, KEYS, &h);

	for (n = 0; n < h.n; n++)
		keys[n] = rxfer_mem_rkey(h.mem[n]);
	if (!rc)
		add_deltas(p, "regions kept", keys, n);
	for (n = 0; !rc && n < KEYS; n++) {
		struct rxfer_mem *mem;

		rc = add_region(p, h.page, page_size(), &mem);
		if (rc)
			break;
		keys[n] = rxfer_mem_rkey(mem);
		rxfer_mem_del(mem);
	}
	if (!rc)
		add_deltas(p, "each given back", keys, n);
	let_go(&h, 0);
	return rc;
}
