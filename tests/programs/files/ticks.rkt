#lang racket/base
(define (work) (for/list ([i 1000]) (number->string i)))
(let loop () (work) (call-with-output-file "/dev/null" #:exists 'append (lambda (o) (write 1 o))) (sleep 0.005) (loop))
