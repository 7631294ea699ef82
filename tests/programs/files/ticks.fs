variable x
: step 100 0 do i x +! loop 4096 allocate throw free throw ;
: run begin step 5 ms again ;
run
