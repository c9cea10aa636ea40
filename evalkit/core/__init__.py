"""What every package needs: checked records, clocks, log events, safe reading of files."""
