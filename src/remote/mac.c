/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/mac.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"

#define SLICE_BYTES (512u << 10) /* 40 us with AES instructions */
#define LABEL "libkdds: tags of memory"

/* The functions of libcrypto that are used, once per process; all exist since 1.1. */
static struct {
	int (*init)(uint64_t options, const OPENSSL_INIT_SETTINGS *settings);
	const EVP_MD *(*sha256)(void);
	unsigned char *(*hmac)(const EVP_MD *md, const void *key, int key_len,
			       const unsigned char *p, size_t n, unsigned char *out,
			       unsigned *len_p);
	const EVP_CIPHER *(*gcm)(void);
	EVP_CIPHER_CTX *(*context_new)(void);
	void (*context_free)(EVP_CIPHER_CTX *c);
	int (*begin)(EVP_CIPHER_CTX *c, const EVP_CIPHER *cipher, ENGINE *engine,
		     const unsigned char *key, const unsigned char *iv);
	int (*update)(EVP_CIPHER_CTX *c, unsigned char *out, int *out_len,
		      const unsigned char *in, int in_len);
	int (*end)(EVP_CIPHER_CTX *c, unsigned char *out, int *out_len);
	int (*control)(EVP_CIPHER_CTX *c, int what, int n, void *p);
} crypto;

static const struct {
	const char *name;
	void *function;
} symbols[] = {
	{"OPENSSL_init_crypto", &crypto.init},
	{"EVP_sha256", &crypto.sha256},
	{"HMAC", &crypto.hmac},
	{"EVP_aes_256_gcm", &crypto.gcm},
	{"EVP_CIPHER_CTX_new", &crypto.context_new},
	{"EVP_CIPHER_CTX_free", &crypto.context_free},
	{"EVP_EncryptInit_ex", &crypto.begin},
	{"EVP_EncryptUpdate", &crypto.update},
	{"EVP_EncryptFinal_ex", &crypto.end},
	{"EVP_CIPHER_CTX_ctrl", &crypto.control},
};

struct kd_mac {
	EVP_CIPHER_CTX *at_once, *by_bits;
	struct kd_mac_job *first, **end; /* a queue; the first has begun if its at is not 0 */
	struct kd_mac_nonce last;
};

static int load(void)
{
	static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1"};
	static void *library; /* never closed: other code in the process may use it */

	if (library)
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		kd_error("a job of several processes needs OpenSSL's libcrypto, 1.1 or 3, and it "
			 "cannot be loaded (%s): install it on every host (Debian: libssl3)",
			 dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *f = dlsym(library, symbols[i].name);

		if (!f) {
			kd_error("libcrypto has no %s: install OpenSSL 1.1 or 3 (Debian: libssl3)",
				 symbols[i].name);
			dlclose(library);
			library = NULL;
			return -ENOENT;
		}
		memcpy(symbols[i].function, &f, sizeof(f));
	}
	/* No cleanup in exit(), which a program may call while the communication thread
	 * computes, and no configuration file. */
	crypto.init(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	return 0;
}

static EVP_CIPHER_CTX *new_context(const uint8_t key[32])
{
	EVP_CIPHER_CTX *c = crypto.context_new();

	if (c && !crypto.begin(c, crypto.gcm(), NULL, key, NULL)) {
		crypto.context_free(c);
		c = NULL;
	}
	return c;
}

int kd_mac_start(struct kd_mac **mac_p, uint32_t rank, const uint8_t secret[32])
{
	uint8_t key[EVP_MAX_MD_SIZE];
	struct kd_mac *mac;
	unsigned len;
	int error = load();

	if (error)
		return error;
	mac = kd_must(calloc(1, sizeof(*mac)));
	mac->end = &mac->first;
	mac->last = (struct kd_mac_nonce){rank, kd_os_random()};
	if (crypto.hmac(crypto.sha256(), secret, 32, (const unsigned char *)LABEL,
			sizeof(LABEL) - 1, key, &len)) {
		mac->at_once = new_context(key);
		mac->by_bits = new_context(key);
	}
	memset(key, 0, sizeof(key));
	*mac_p = mac;
	if (mac->at_once && mac->by_bits)
		return 0;
	kd_mac_stop(mac);
	*mac_p = NULL;
	kd_error("libcrypto cannot compute AES-256-GCM: no memory, or a version without it");
	return -ENOMEM;
}

void kd_mac_stop(struct kd_mac *mac)
{
	if (mac->at_once)
		crypto.context_free(mac->at_once);
	if (mac->by_bits)
		crypto.context_free(mac->by_bits);
	free(mac);
}

struct kd_mac_nonce kd_mac_draw(struct kd_mac *mac)
{
	mac->last.number++;
	return mac->last;
}

/* libcrypto returns 1 or 0. With a context that has its key it allocates nothing. */
static void must(int result)
{
	if (result != 1)
		kd_die("libcrypto fails to compute AES-256-GCM");
}

static void begin(EVP_CIPHER_CTX *c, struct kd_mac_nonce nonce)
{
	unsigned char iv[12];

	memcpy(iv, &nonce.rank, 4);
	memcpy(iv + 4, &nonce.number, 8);
	must(crypto.begin(c, NULL, NULL, NULL, iv));
}

/* GMAC is GCM with additional data only: nothing is encrypted. */
static void add(EVP_CIPHER_CTX *c, const void *p, uint64_t bytes)
{
	int none;

	for (const unsigned char *at = p; bytes;) {
		int n = (int)kd_min(bytes, (uint64_t)1 << 30);

		must(crypto.update(c, NULL, &none, at, n));
		at += n;
		bytes -= (uint64_t)n;
	}
}

static void end(EVP_CIPHER_CTX *c, uint8_t tag[KD_MAC_BYTES])
{
	int none;

	must(crypto.end(c, tag, &none));
	must(crypto.control(c, EVP_CTRL_AEAD_GET_TAG, KD_MAC_BYTES, tag));
}

void kd_mac_tag(struct kd_mac *mac, struct kd_mac_nonce nonce, const void *p, uint64_t bytes,
		uint8_t tag[KD_MAC_BYTES])
{
	begin(mac->at_once, nonce);
	add(mac->at_once, p, bytes);
	end(mac->at_once, tag);
}

void kd_mac_begin(struct kd_mac *mac, struct kd_mac_job *j)
{
	kd_assert(!*mac->end);
	j->at = 0;
	j->next = NULL;
	*mac->end = j;
	mac->end = &j->next;
}

void kd_mac_forget(struct kd_mac *mac, struct kd_mac_job *j)
{
	struct kd_mac_job **link = &mac->first;

	while (*link && *link != j)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = j->next;
	if (!j->next)
		mac->end = link;
}

int kd_mac_work(struct kd_mac *mac)
{
	for (uint64_t left = SLICE_BYTES; mac->first && left;) {
		struct kd_mac_job *j = mac->first;
		uint64_t n = kd_min(j->bytes - j->at, left);

		kd_assert(j->at <= j->bytes);
		if (!j->at)
			begin(mac->by_bits, j->nonce);
		add(mac->by_bits, (const char *)j->p + j->at, n);
		j->at += n;
		left -= n;
		if (j->at < j->bytes)
			break;
		end(mac->by_bits, j->tag);
		kd_mac_forget(mac, j);
		j->done(j);
	}
	return mac->first != NULL;
}
