(defun work () (let ((l nil)) (dotimes (i 1000) (push (format nil "~d" i) l)) (length l)))
(loop (work) (with-open-file (s "/dev/null" :direction :output :if-exists :append) (print 1 s)) (sleep 0.005))
