"""A checkpoint in this process, by Hugging Face transformers. `body` says what is asked, `backend` gathers requests
into batches for one worker thread, `checkpoint` is all that knows torch."""
