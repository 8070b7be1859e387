// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the dynamic symbol table of a vdso through its section headers, which
 * the kernel leaves in place, with every offset checked.
 */
#include "restart/vdso_symbols.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* `count` objects of `size` bytes at `offset`, or NULL if they are not all inside. */
static const void *inside(const void *image, size_t length, uint64_t offset, uint64_t size,
			  uint64_t count)
{
	if (offset > length || count > length || (count && size > (length - offset) / count))
		return NULL;
	return (const char *)image + offset;
}

static const Elf64_Shdr *find_section(const Elf64_Shdr *section, size_t count, uint32_t type)
{
	for (size_t i = 0; i < count; i++)
		if (section[i].sh_type == type)
			return &section[i];
	return NULL;
}

static void add(struct vdso_symbols *out, const Elf64_Sym *symbol, const char *strings,
		size_t strings_length, size_t length)
{
	const char *name = strings + symbol->st_name;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_value ||
	    symbol->st_name >= strings_length || out->count == VDSO_SYMBOLS_MAX)
		return;
	if (!memchr(name, 0, strings_length - symbol->st_name))
		return;
	if (symbol->st_value >= length || symbol->st_size > length - symbol->st_value)
		return;
	out->at[out->count++] = (struct vdso_symbol){
		.name = name, .value = symbol->st_value, .size = symbol->st_size,
	};
}

int vdso_symbols(struct vdso_symbols *out, const void *image, size_t length)
{
	const Elf64_Ehdr *head = inside(image, length, 0, sizeof(*head), 1);
	const Elf64_Shdr *section, *table, *names;
	const Elf64_Sym *symbol;
	const char *strings;

	memset(out, 0, sizeof(*out));
	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(*section) ||
	    head->e_shoff % 8)
		return -EINVAL;
	section = inside(image, length, head->e_shoff, sizeof(*section), head->e_shnum);
	if (!section)
		return -EINVAL;
	table = find_section(section, head->e_shnum, SHT_DYNSYM);
	if (!table || table->sh_link >= head->e_shnum || table->sh_offset % 8)
		return -EINVAL;
	names = &section[table->sh_link];
	symbol = inside(image, length, table->sh_offset, 1, table->sh_size);
	strings = inside(image, length, names->sh_offset, 1, names->sh_size);
	if (!symbol || !strings)
		return -EINVAL;
	for (size_t i = 0; i < table->sh_size / sizeof(*symbol); i++)
		add(out, &symbol[i], strings, names->sh_size, length);
	return out->count ? 0 : -EINVAL;
}

const struct vdso_symbol *vdso_symbol(const struct vdso_symbols *symbols, const char *name)
{
	for (size_t i = 0; i < symbols->count; i++)
		if (!strcmp(symbols->at[i].name, name))
			return &symbols->at[i];
	return NULL;
}
