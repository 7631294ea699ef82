import Control.Concurrent
import Control.Monad
import qualified Data.Map as M
main :: IO ()
main = do
  v <- newMVar (M.empty :: M.Map Int Int)
  _ <- forkIO $ forever $ do { modifyMVar_ v (\m -> return $! M.filter even m); threadDelay 9000 }
  forM_ [1..] $ \i -> do
    modifyMVar_ v (\m -> return $! M.insert (i `mod` 1000) i m)
    threadDelay 5000
