// SPDX-License-Identifier: GPL-2.0
/*
 * The build ID of an ELF file: it distinguishes two versions of a library
 * whatever their times are.  The file is not trusted: every size is checked.
 */
#include "resource/build_id.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_HEADERS	64
#define MAX_NOTES	4096

/* Finds the GNU build id among notes. Its length, or 0. */
static int find_note(const char *notes, size_t length, uint8_t *id, size_t room)
{
	size_t at = 0;

	while (length - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, data;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		if (note.n_namesz > length || note.n_descsz > length)
			return 0;
		data = name + ((note.n_namesz + 3) & ~3u);
		if (data > length || note.n_descsz > length - data)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && note.n_descsz <= room) {
			memcpy(id, notes + data, note.n_descsz);
			return note.n_descsz;
		}
		at = data + ((note.n_descsz + 3) & ~3u);
		if (at > length)
			return 0;
	}
	return 0;
}

int build_id_read(int fd, uint8_t *id, size_t room)
{
	Elf64_Phdr header[MAX_HEADERS];
	char notes[MAX_NOTES];
	Elf64_Ehdr elf;
	size_t count;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_phentsize != sizeof(*header))
		return 0;
	count = elf.e_phnum < MAX_HEADERS ? elf.e_phnum : MAX_HEADERS;
	if (pread(fd, header, count * sizeof(*header), elf.e_phoff) !=
	    (ssize_t)(count * sizeof(*header)))
		return 0;
	for (size_t i = 0; i < count; i++) {
		size_t length = header[i].p_filesz < MAX_NOTES ? header[i].p_filesz : MAX_NOTES;
		ssize_t got;
		int found;

		if (header[i].p_type != PT_NOTE)
			continue;
		got = pread(fd, notes, length, header[i].p_offset);
		found = got > 0 ? find_note(notes, got, id, room) : 0;
		if (found)
			return found;
	}
	return 0;
}

/* ---- what was read before --------------------------------------------------- */

static struct known {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
	int length;
	uint8_t id[BUILD_ID_MAX];
} *known;
static size_t nr_known;

static struct known *find_known(const struct stat *st)
{
	for (size_t i = 0; i < nr_known; i++) {
		struct known *k = &known[i];

		if (k->ino == st->st_ino && k->dev == st->st_dev && k->size == st->st_size &&
		    k->changed.tv_sec == st->st_ctim.tv_sec &&
		    k->changed.tv_nsec == st->st_ctim.tv_nsec)
			return k;
	}
	return NULL;
}

/* NULL: no memory to cache more, which only costs time. */
static struct known *add_known(const struct stat *st)
{
	struct known *larger;

	if (!(nr_known & (nr_known - 1))) {	/* full: 0, 1, 2, 4, 8 … */
		larger = realloc(known, (nr_known ? 2 * nr_known : 1) * sizeof(*known));
		if (!larger)
			return NULL;
		known = larger;
	}
	known[nr_known] = (struct known){
		.dev = st->st_dev, .ino = st->st_ino, .size = st->st_size,
		.changed = st->st_ctim,
	};
	return &known[nr_known++];
}

int build_id_of(int fd, const struct stat *st, uint8_t id[BUILD_ID_MAX])
{
	struct known *k = find_known(st);
	int length;

	if (k) {
		memcpy(id, k->id, sizeof(k->id));
		return k->length;
	}
	length = build_id_read(fd, id, BUILD_ID_MAX);
	k = add_known(st);
	if (k) {
		k->length = length;
		memcpy(k->id, id, length);
	}
	return length;
}
