"""What every end-to-end suite shares: a RESP client that keeps reply types, and a real idemd process."""
