:- initialization(main).
step :- numlist(1,200,L), atomic_list_concat(L,',',A), atom_length(A,_).
main :- repeat, step, sleep(0.005), fail.
