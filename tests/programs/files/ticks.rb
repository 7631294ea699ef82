# A loop with a thread of its own and garbage.
worker = Thread.new { loop { (1..300).map(&:to_s); sleep 0.005 } }
loop { (1..100).to_h { |one| [one, one.to_s] }; sleep 0.01; worker.alive? || exit }
