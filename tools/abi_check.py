#!/usr/bin/env python3
"""Guards the layout of the plugin ABI.

Reads the headers under include/tenon/plugin, compiles a C program that prints the offset and size of every member of
every struct and the value of every enumerator, and compares the result with the recorded one. It also fails for a struct
that has neither `uint32_t struct_size` as its first member nor the word "frozen" in the comment before it.

    abi_check.py                 compare with tests/abi/v1.0.txt
    abi_check.py --print         print the layout
    abi_check.py --update        record the layout, after an intended change
    abi_check.py --headers       instead: compile every header alone, as C11 and as C++17, with every warning an error
"""

import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST_PADDING = 7  # no member is aligned to more than 8 bytes, so a wider gap means that a member was not read


class Fault(Exception):
    """Something to tell the user; ends the run."""


class Struct:
    def __init__(self, header, name, members, frozen):
        self.header = header
        self.name = name
        self.members = members  # [(name, declaration)]
        self.frozen = frozen


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def matching_brace(text, opening):
    depth = 0
    for position in range(opening, len(text)):
        if text[position] == "{":
            depth += 1
        elif text[position] == "}":
            depth -= 1
            if depth == 0:
                return position
    raise Fault("a brace is never closed")


def member_name(declaration):
    for pattern in (
        r"\(\s*TN_CALL\s*\*\s*(\w+)\s*\)",  # a function pointer; the first one, as arguments may be such too
        r"\(\s*\*\s*(\w+)\s*\)\s*\[",  # a pointer to an array
        r"(\w+)\s*(?:\[[^\]]*\]\s*)*$",
    ):
        found = re.search(pattern, declaration)
        if found:
            return found.group(1)
    raise Fault(f"cannot read the member '{declaration}'")


def parse_header(path, include):
    text = path.read_text(encoding="utf-8")
    header = path.relative_to(include).as_posix()
    structs = []
    end_of_previous = 0
    for found in re.finditer(r"^(?:typedef )?struct (\w+) \{", text, flags=re.M):
        opening = found.end() - 1
        closing = matching_brace(text, opening)
        body = strip_comments(text[opening + 1 : closing])
        members = []
        for declaration in body.split(";"):
            declaration = " ".join(declaration.split())
            if declaration:
                members.append((member_name(declaration), declaration))
        # The comment that belongs to a struct begins a line; comments inside the enums in between do not.
        comments = re.findall(r"^/\*.*?\*/", text[end_of_previous : found.start()], flags=re.M | re.S)
        frozen = bool(comments) and re.search(r"\bfrozen\b", comments[-1]) is not None
        structs.append(Struct(header, found.group(1), members, frozen))
        end_of_previous = closing
    if len(structs) != len(re.findall(r"\bstruct\s+\w*\s*\{", strip_comments(text))):
        raise Fault(f"{header}: a struct is written in a form that this tool does not read")
    enumerators = []
    for found in re.finditer(r"\benum\s*\w*\s*\{([^}]*)\}", strip_comments(text)):
        enumerators += re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", found.group(1).strip())
    strings = re.findall(r'^#define (TN_IFACE_\w+) ("[^"]*")', text, flags=re.M)
    return structs, [(header, name) for name in enumerators], strings


def check_rule(structs):
    for struct in structs:
        first = struct.members[0][1] if struct.members else ""
        if first != "uint32_t struct_size" and not struct.frozen:
            raise Fault(
                f"{struct.header}: {struct.name} has neither 'uint32_t struct_size' as its first member nor the word "
                "'frozen' in its comment; an ABI struct needs one of them"
            )


def probe_source(headers, structs, enumerators):
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    lines += [f"#include <tenon/plugin/{header}>" for header in headers]
    lines.append("int main(void) {")
    for struct in structs:
        lines.append(f'  printf("S %zu %zu\\n", sizeof(struct {struct.name}), _Alignof(struct {struct.name}));')
        for name, _ in struct.members:
            size = f"sizeof(((struct {struct.name}*)0)->{name})"
            lines.append(f'  printf("M %zu %zu\\n", offsetof(struct {struct.name}, {name}), {size});')
    for _, name in enumerators:
        lines.append(f'  printf("E %lld\\n", (long long){name});')
    lines += ["  return 0;", "}"]
    return "\n".join(lines) + "\n"


def run_probe(compiler, include, source):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "probe.c"
        program = pathlib.Path(folder) / "probe"
        path.write_text(source, encoding="utf-8")
        command = [compiler, "-std=c11", f"-I{include}", str(path), "-o", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Fault(f"the probe does not compile:\n{done.stderr}")
        return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()


def layout(compiler, include):
    plugin = include / "tenon" / "plugin"
    paths = sorted(plugin.rglob("*.h"))
    if not paths:
        raise Fault(f"no headers under {plugin}")
    structs, enumerators, strings = [], [], []
    for path in paths:
        for everything, found in zip((structs, enumerators, strings), parse_header(path, plugin)):
            everything += found
    check_rule(structs)
    headers = [path.relative_to(plugin).as_posix() for path in paths]
    numbers = iter(run_probe(compiler, include, probe_source(headers, structs, enumerators)))

    lines = []
    for struct in structs:
        _, size, align = next(numbers).split()
        lines.append(f"struct {struct.name}  size {size} align {align}{'  frozen' if struct.frozen else ''}")
        end = 0
        for name, declaration in struct.members:
            _, offset, member_size = (int(word) if word.isdigit() else word for word in next(numbers).split())
            if not 0 <= offset - end <= LONGEST_PADDING:
                raise Fault(f"{struct.header}: a member of {struct.name} before '{name}' was not read")
            end = offset + member_size
            lines.append(f"  {offset:4} {member_size:4}  {declaration}")
        if not 0 <= int(size) - end <= LONGEST_PADDING:
            raise Fault(f"{struct.header}: the last member of {struct.name} was not read")
    lines += [f"enum {name} = {next(numbers).split()[1]}" for _, name in enumerators]
    lines += [f"id {name} = {text}" for name, text in strings]
    return lines


def check_headers(compilers, include):
    plugin = include / "tenon" / "plugin"
    warnings = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    for path in sorted(plugin.rglob("*.h")):
        for compiler, standard, language in compilers:
            command = [compiler, f"-std={standard}", *warnings, f"-I{include}", "-x", language, "-"]
            source = f"#include <tenon/plugin/{path.relative_to(plugin).as_posix()}>\nextern int not_empty;\n"
            done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Fault(f"{path} does not compile alone as {standard} with {compiler}:\n{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", type=pathlib.Path, default=ROOT / "include")
    parser.add_argument("--baseline", type=pathlib.Path, default=ROOT / "tests" / "abi" / "v1.0.txt")
    parser.add_argument("--cc", action="append", help="C compiler (cc); with --headers it may be given again")
    parser.add_argument("--cxx", action="append", help="C++ compiler (c++); with --headers it may be given again")
    parser.add_argument("--print", action="store_true", help="print the layout and compare nothing")
    parser.add_argument("--update", action="store_true", help="record the layout")
    parser.add_argument("--headers", action="store_true", help="compile every header alone")
    arguments = parser.parse_args()
    c_compilers = arguments.cc or ["cc"]
    cxx_compilers = arguments.cxx or ["c++"]

    if arguments.headers:
        compilers = [(compiler, "c11", "c") for compiler in c_compilers]
        compilers += [(compiler, "c++17", "c++") for compiler in cxx_compilers]
        check_headers(compilers, arguments.include)
        return
    now = layout(c_compilers[0], arguments.include)
    if arguments.print:
        print("\n".join(now))
    elif arguments.update:
        arguments.baseline.write_text("\n".join(now) + "\n", encoding="utf-8")
    elif not arguments.baseline.exists():
        raise Fault(f"{arguments.baseline} does not exist; write it with --update")
    else:
        recorded = arguments.baseline.read_text(encoding="utf-8").splitlines()
        difference = list(difflib.unified_diff(recorded, now, str(arguments.baseline), "now", lineterm=""))
        if difference:
            raise Fault(
                "\n".join(difference) + "\nthe layout of the plugin ABI has changed; if that is intended, describe it "
                "in docs/rfcs/ and record it with tools/abi_check.py --update"
            )


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(f"abi_check: {fault}")
