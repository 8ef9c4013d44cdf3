# Wrappers of scripts/: make, make test, make install PREFIX=/usr/local DESTDIR=, make dist
PREFIX  ?= /usr/local
DESTDIR ?=

build:
	scripts/build

setup test demo:
	scripts/$@

# A tarball that works where it is unpacked, a .deb and an .rpm in build/dist.
dist:
	scripts/package

# Where each of the files below PREFIX is.
MAN = share/man/man1
BASH = share/bash-completion/completions/numaopt
ZSH = share/zsh/site-functions/_numaopt
FISH = share/fish/vendor_completions.d/numaopt.fish
DOC = share/doc/numaopt
TO = $(DESTDIR)$(PREFIX)

# PREFIX/bin/numaopt finds PREFIX/lib/numaopt by itself.
install: build
	install -d $(addprefix $(TO)/,bin lib $(MAN) $(DOC) $(dir $(BASH) $(ZSH) $(FISH)))
	install -m 755 build/numaopt $(TO)/bin/numaopt
	cp -R build/lib/numaopt $(TO)/lib/
	$(MAKE) -C runtime-c BUILD=../build PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) install-api
	build/numaopt man $(TO)/$(MAN)
	build/numaopt completion bash >$(TO)/$(BASH)
	build/numaopt completion zsh >$(TO)/$(ZSH)
	build/numaopt completion fish >$(TO)/$(FISH)
	install -m 644 README.md CHANGELOG.md LICENSE $(TO)/$(DOC)/

uninstall:
	rm -rf $(TO)/bin/numaopt $(TO)/lib/numaopt $(TO)/lib/libnumaopt-api.* $(addprefix $(TO)/include/numaopt,.h .f90) \
		$(TO)/$(MAN)/numaopt*.1 $(addprefix $(TO)/,$(BASH) $(ZSH) $(FISH) $(DOC))

clean:
	rm -rf build

.PHONY: dist build setup test demo install uninstall clean
