(define (work) (map number->string (iota 500)))
(let loop () (work) (call-with-output-file "/dev/null" (lambda (p) (write 1 p))) (usleep 5000) (loop))
