#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# pages.py PID: what the kernel says of the pages of its private mappings, as JSON, with the names
# of cr_checkpoint --json.  It reads only pages that are there, so it changes nothing.
import json
import sys

PAGE = 4096
PRESENT, SWAPPED, OF_FILE = 1 << 63, 1 << 62, 1 << 61


def mappings(pid):
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            field = line.split(None, 5)
            start, end = (int(number, 16) for number in field[0].split("-"))
            name = field[5].strip() if len(field) > 5 else ""
            yield start, end, field[1], int(field[4]), name


def count(pid):
    n = dict.fromkeys(("mappings", "pages_scanned", "pages", "pages_zero", "pages_untouched",
                       "pages_mapped"), 0)
    with open(f"/proc/{pid}/pagemap", "rb", 0) as pagemap, \
            open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for start, end, rights, inode, name in mappings(pid):
            n["mappings"] += name != "[vsyscall]"
            if rights[3] != "p" or name in ("[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]"):
                continue
            pagemap.seek(start // PAGE * 8)
            for address in range(start, end, PAGE):
                entry = int.from_bytes(pagemap.read(8), "little")
                n["pages_scanned"] += 1
                if inode:
                    copied = entry & (PRESENT | SWAPPED) and not entry & OF_FILE
                    n["pages" if copied else "pages_mapped"] += 1
                elif not entry & (PRESENT | SWAPPED):
                    n["pages_untouched"] += 1
                elif entry & PRESENT and read_page(memory, address) == bytes(PAGE):
                    n["pages_zero"] += 1
                else:
                    n["pages"] += 1
    return n


def read_page(memory, address):
    memory.seek(address)
    return memory.read(PAGE)


print(json.dumps(count(int(sys.argv[1]))))
