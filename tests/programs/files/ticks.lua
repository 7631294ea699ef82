local ffi=require'ffi'
ffi.cdef[[struct timespec{long s,ns;}; int clock_nanosleep(int,int,const struct timespec*,struct timespec*); int clock_gettime(int,struct timespec*);]]
local t=ffi.new'struct timespec'; ffi.C.clock_gettime(1,t)
local q={}
while true do
  t.ns=t.ns+5000000; if t.ns>=1000000000LL then t.ns=t.ns-1000000000LL; t.s=t.s+1 end
  ffi.C.clock_nanosleep(1,1,t,nil)
  for i=1,200 do q[i]={i,tostring(i)} end
end
