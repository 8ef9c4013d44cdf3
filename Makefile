# Wrappers of scripts/: make, make test, make install PREFIX=/usr/local DESTDIR=
PREFIX  ?= /usr/local
DESTDIR ?=

build:
	scripts/build

setup test demo:
	scripts/$@

# PREFIX/bin/numaopt finds PREFIX/lib/numaopt by itself.
install: build
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 755 build/numaopt $(DESTDIR)$(PREFIX)/bin/numaopt
	cp -R build/lib/numaopt $(DESTDIR)$(PREFIX)/lib/
	$(MAKE) -C runtime-c BUILD=../build PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) install-api
	build/numaopt man $(DESTDIR)$(PREFIX)/share/man/man1
	build/numaopt completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/numaopt

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/bin/numaopt $(DESTDIR)$(PREFIX)/lib/numaopt $(DESTDIR)$(PREFIX)/lib/libnumaopt-api.* \
		$(addprefix $(DESTDIR)$(PREFIX)/include/numaopt,.h .f90) $(DESTDIR)$(PREFIX)/share/man/man1/numaopt*.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/numaopt

clean:
	rm -rf build

.PHONY: build setup test demo install uninstall clean
