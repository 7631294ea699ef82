#!/bin/sh
# SPDX-License-Identifier: MIT
#
# openplc.sh PROGRAM.st OUTPUT - builds OpenPLC's runtime, below here, with a program.
#
# Its compiler of PLC programs first, then what it makes of this one. The sources are
# accepted by g++ with -fpermissive alone; without hardware, and without DNP3.
set -eu
plc=$1 output=$2
cd utils/matiec_src
mkdir made
flex -o made/iec_flex.cc stage1_2/iec_flex.ll
bison --defines --output=made/iec_bison.cc stage1_2/iec_bison.yy
cat >config/config.h <<END
#define HAVE_STRCASECMP 1
#define PACKAGE_NAME "matiec"
#define PACKAGE_VERSION ""
END
g++ -O0 -w -fpermissive -std=gnu++11 -I. -Imade -Istage1_2 -Iabsyntax \
	-DYY_BUF_SIZE=65536 '-DDEFAULT_LIBDIR="lib"' '-DHGVERSION=""' -o iec2c \
	main.cc made/*.cc stage1_2/*.cc absyntax/*.cc absyntax_utils/*.cc stage3/*.cc \
	stage4/stage4.cc stage4/generate_c/generate_c.cc

cd ../../webserver/core
modbus=../../utils/libmodbus_src/src snap7=../../utils/snap7_src
cp "$plc" program.st
../../utils/matiec_src/iec2c -f -l -p -r -R -a -I ../lib program.st
g++ -w -o glue_generator ../../utils/glue_generator_src/glue_generator.cpp
./glue_generator
mv dnp3_dummy.disabled dnp3.cpp
cp hardware_layers/blank.cpp hardware_layer.cpp
cp $snap7/wrapper/* .
sed 's/@LIBMODBUS_VERSION_[A-Z]*@/0/; s/@LIBMODBUS_VERSION@/0/' \
	$modbus/modbus-version.h.in >$modbus/modbus-version.h
cat >$modbus/config.h <<END
#define HAVE_NETINET_TCP_H 1
#define HAVE_DECL_TIOCM_RTS 1
END
options="-g -O2 -w -ffile-prefix-map=$PWD=openplc"
for name in modbus modbus-data modbus-tcp modbus-rtu; do
	# shellcheck disable=SC2086 # several words
	gcc $options -I$modbus -c $modbus/$name.c -o $name.o
done
# shellcheck disable=SC2086 # several words
g++ $options -std=gnu++11 -fpermissive -static -pthread -Ilib -I$modbus \
	-I$snap7/src/core -I$snap7/src/sys -I$snap7/src/lib -o "$output" \
	./*.cpp -x c++ Config0.c Res0.c -x none ./*.o $snap7/src/*/*.cpp
