"""The front-end process: its requests over the link, and the services that answer them."""
