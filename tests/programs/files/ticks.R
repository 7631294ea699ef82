work <- function() { x <- sapply(1:200, function(i) paste("a", i)); length(x) }
repeat { work(); f <- file("/dev/null","w"); writeLines("x", f); close(f); Sys.sleep(0.005) }
